// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "sim/config/file_path.h"
#include "sim/serving/request_source.h"
#include "sim/units/comma_separated.h"
#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

std::string names_of_formats() {
  return comma_joined(TraceFormats::items(), [](const auto& item) { return item.first; });
}

struct Trace final : RequestSourceConfig {
  Trace() { arrival = "trace"; }

  std::unique_ptr<RequestSource> make() const override;
  std::string file() const override { return trace.path; }
  std::int64_t count() const override { return requests; }

  FilePath trace;
  std::string format = "auto";
  std::int64_t requests = 0;
  double speed = 1;

  static const config::Schema<Trace>& schema() {
    using config::between;
    static const config::Schema<Trace> schema =
        source_schema<Trace>("trace", "recorded requests")
            .required("trace", &Trace::trace,
                      "file with the requests, plain or gzip, of at most 512 MiB unpacked")
            .optional("format", &Trace::format,
                      "form of the file: auto (told by its beginning), or one of `orrery describe "
                      "traces`")
            .optional("requests", &Trace::requests, "the first so many; 0: all", between(0, 1e9))
            .optional("speed", &Trace::speed, "how many times faster requests come than recorded",
                      between(1e-6, 1e6))
            .check(
                [](const Trace& t) {
                  const bool known =
                      t.format == "auto" || TraceFormats::items().count(t.format) > 0;
                  return known ? std::string()
                               : "unknown format; there are: auto, " + names_of_formats();
                },
                "format");
    return schema;
  }
};

class TraceSource final : public RequestSource {
 public:
  explicit TraceSource(std::vector<Request> requests) : requests_(std::move(requests)) {}
  std::optional<Request> next() override {
    if (next_ == requests_.size()) return std::nullopt;
    return std::move(requests_[next_++]);
  }

 private:
  std::vector<Request> requests_;
  std::size_t next_ = 0;
};

const TraceFormat& format_of(const TraceText& trace, const std::string& name) {
  constexpr std::size_t kHead = 4096;
  if (name != "auto") return TraceFormats::at("format", name);
  const std::string_view head = std::string_view(trace.text).substr(0, kHead);
  for (const auto& [known, item] : TraceFormats::items())
    if (item.entry.recognises(head)) return item.entry;
  config::throw_error(
      trace.text, {trace.name, 1, 1}, 1,
      "this is a request trace of no form that is known; there are: " + names_of_formats());
}

std::unique_ptr<RequestSource> Trace::make() const {
  const TraceText text{trace.path, read_input(trace.path)};
  std::vector<TracedRequest> traced = format_of(text, format).read(text);
  if (traced.empty()) throw config::ConfigError(trace.path + ": has no requests");
  std::ranges::stable_sort(traced, {}, &TracedRequest::seconds);
  if (requests > 0 && requests < static_cast<std::int64_t>(traced.size()))
    traced.resize(static_cast<std::size_t>(requests));
  std::vector<Request> all;
  all.reserve(traced.size());
  for (TracedRequest& t : traced) {
    t.request.id = static_cast<std::int64_t>(all.size());
    t.request.arrival = to_picoseconds(Seconds((t.seconds - traced.front().seconds) / speed));
    all.push_back(std::move(t.request));
  }
  return std::make_unique<TraceSource>(std::move(all));
}

const config::Registered<RequestSourceConfig>::Add<Trace> added_trace("trace", "recorded requests",
                                                                      "trace");

}  // namespace
}  // namespace orrery
