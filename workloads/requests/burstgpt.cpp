// SPDX-License-Identifier: Apache-2.0
#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

const TraceFormats::Register registered_burstgpt(
    "burstgpt", "BurstGPT: Timestamp[s], Request tokens, Response tokens",
    {[](std::string_view head) { return head.starts_with("Timestamp"); },
     [](const TraceText& trace) {
       const bool unit = trace.text.starts_with("Timestamp[s]");
       return read_trace_columns(trace, {unit ? "Timestamp[s]" : "Timestamp", "Request tokens",
                                         "Response tokens", trace_time});
     }});

}  // namespace
}  // namespace orrery
