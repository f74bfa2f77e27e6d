// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deque>
#include <unordered_map>
#include <utility>

#include "sim/serving/request_source.h"
#include "sim/units/hash.h"
#include "sim/units/units.h"
#include "workloads/requests/lengths.h"

namespace orrery {
namespace {

constexpr std::int64_t kTurnPieceTokens = 16;  ///< tokens of a piece that turns share

/// Conversations: each turn's prompt is all that was said before, and something new.
struct Sessions final : RequestSourceConfig {
  Sessions() { arrival = "sessions"; }

  std::unique_ptr<RequestSource> make() const override;
  std::int64_t count() const override { return 0; }

  Hertz rate{1};
  std::int64_t sessions = 100, system_prompt = 0, max_context = 32768, seed = 0;
  Lengths turns = Lengths::of(4), input = Lengths::of(128), output = Lengths::of(128);
  Seconds think_time{10};

  static const config::Schema<Sessions>& schema() {
    using config::between;
    using S = Sessions;
    static const config::Schema<S> schema =
        source_schema<S>(
            "sessions",
            "conversations whose turns wait for the output before them and for the user")
            .required("rate", &S::rate, "conversations that begin in a second, at random: 0.5 /s",
                      config::positive())
            .optional("sessions", &S::sessions, "conversations in all", between(1, 1e8))
            .optional("turns", &S::turns, "turns of a conversation")
            .optional("system_prompt", &S::system_prompt,
                      "tokens that all conversations begin with", between(0, 1e7))
            .optional("input", &S::input, "tokens that a turn adds to the prompt")
            .optional("output", &S::output, "output tokens of a request")
            .optional("think_time", &S::think_time,
                      "mean time between the end of an output and the next turn, at random",
                      config::at_least(0))
            .optional("max_context", &S::max_context,
                      "tokens of a conversation with the output to come, beyond which it ends",
                      between(2, 1e8))
            .optional("seed", &S::seed, "seed of arrivals, lengths and pauses", between(0, 1e15));
    return schema;
  }
};

/// All of a conversation is drawn when it begins: what is said does not depend on who serves.
class SessionSource final : public RequestSource {
 public:
  explicit SessionSource(const Sessions& config)
      : config_(config),
        lengths_(config.input, config.output, config.seed),
        turn_counts_(config.turns.values()),
        state_(static_cast<std::uint64_t>(config.seed)) {}

  std::optional<Request> next() override {
    if (begun_ == config_.sessions) return std::nullopt;
    now_s_ += exponential() / config_.rate.base();
    Session session;
    session.number = begun_++;
    const std::int64_t turns = config_.turns.draw(state_, turn_counts_);
    for (std::int64_t i = 0; i < turns; ++i) {
      const std::int64_t prompt = lengths_.prompt();
      session.rest.push_back(
          {prompt, lengths_.output(), config_.think_time.base() * exponential()});
    }
    session.said = config_.system_prompt;
    return turn(std::move(session), to_picoseconds(Seconds(now_s_)));
  }

  std::optional<Request> after(const Request& answered, Picoseconds now) override {
    const auto found = waiting_.find(answered.id);
    if (found == waiting_.end()) return std::nullopt;
    Session session = std::move(found->second);
    waiting_.erase(found);
    session.said = answered.prompt + answered.output;
    session.adapter = answered.adapter;
    const Picoseconds at = checked_add(now, to_picoseconds(Seconds(session.pause_s)));
    return turn(std::move(session), at);
  }

 private:
  struct Turn {
    std::int64_t input = 1, output = 1;
    double pause_s = 0;  ///< pause after its answer
  };
  struct Session {
    std::int64_t number = 0;
    std::int64_t said = 0;      ///< tokens so far
    std::int32_t adapter = -1;  ///< adapter that its first turn was given
    double pause_s = 0;
    std::deque<Turn> rest;
  };

  double exponential() { return -std::log(next_uniform(state_)); }

  std::optional<Request> turn(Session session, Picoseconds at) {
    if (session.rest.empty()) return std::nullopt;
    const Turn turn = session.rest.front();
    session.rest.pop_front();
    const std::int64_t prompt = session.said + turn.input;
    if (prompt + turn.output > config_.max_context) return std::nullopt;
    session.pause_s = turn.pause_s;
    Request request{.id = requests_++, .arrival = at, .prompt = prompt, .output = turn.output};
    request.adapter = session.adapter;
    request.prefix = pieces(session.number, prompt + turn.output);
    waiting_.emplace(request.id, std::move(session));
    return request;
  }

  /// Pieces of the prompt and of the answer, which the next turn's prompt will have.
  std::shared_ptr<const PrefixHashes> pieces(std::int64_t session, std::int64_t tokens) const {
    auto prefix = std::make_shared<PrefixHashes>(PrefixHashes{kTurnPieceTokens, {}});
    for (std::int64_t i = 0; i < tokens / kTurnPieceTokens; ++i) {
      const bool common = (i + 1) * kTurnPieceTokens <= config_.system_prompt;
      std::uint64_t state = common ? 0 : static_cast<std::uint64_t>(session + 1) << 32;
      state += static_cast<std::uint64_t>(i);
      prefix->pieces.push_back(next_random(state));
    }
    return prefix->pieces.empty() ? nullptr : prefix;
  }

  const Sessions& config_;
  LengthDraws lengths_;
  std::vector<std::int64_t> turn_counts_;
  std::uint64_t state_;
  std::int64_t begun_ = 0, requests_ = 0;
  double now_s_ = 0;
  std::unordered_map<std::int64_t, Session> waiting_;  ///< conversations by the turn in work
};

std::unique_ptr<RequestSource> Sessions::make() const {
  return std::make_unique<SessionSource>(*this);
}

const config::Registered<RequestSourceConfig>::Add<Sessions> added_sessions(
    "sessions", "conversations whose turns wait for the output before them and for the user");

}  // namespace
}  // namespace orrery
