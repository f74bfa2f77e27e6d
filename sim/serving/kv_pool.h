// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/serving/request.h"
#include "sim/units/units.h"

namespace orrery {

/// Memory below that of the devices, which pieces of prompts go to when their blocks are needed.
struct KvTierRules {
  std::int64_t tokens = 0;  ///< tokens that it has room for
  Seconds token{};          ///< time to bring a token back
  Seconds latency{};        ///< time before the first of those that are brought back together
};

/// How an engine keeps keys and values.
struct KvRules {
  std::int64_t block_tokens = 16;  ///< tokens of a block
  std::int64_t blocks = 0;         ///< blocks of the pool
  bool prefix_caching = false;     ///< blocks of ended requests are kept for equal prefixes
  std::int64_t draft_tokens = 0;   ///< tokens that a decode adds beyond its next, and may take back
  std::vector<KvTierRules> tiers = {};  ///< tiers from the nearest on; with prefix_caching
  /// Recurrent layers have a state of each sequence. A prefix can be taken up where one is kept.
  std::int64_t state_blocks = 0;  ///< blocks that a state takes
  std::int64_t state_tokens = 0;  ///< tokens at least from a kept state to the next
  bool states_apart = false;      ///< those of requests that run take no blocks of the pool
  /// Layers with a sliding window keep the latest tokens of a sequence alone.
  std::int64_t window = 0;   ///< tokens of the longest window; 0: no such layers
  double window_blocks = 0;  ///< blocks that a full window takes
  /// Upper bound of the tokens kept per sequence, set by windows of all layers. 0 means no bound.
  std::int64_t most_kept = 0;
};

/// Blocks of keys and values of an instance (Kwon et al. 2023, PagedAttention). A request holds
/// whole blocks for the tokens in its cache. With prefix caching, pieces of prompts that several
/// requests begin with are held once, and stay after the last of them has ended until their blocks
/// are needed: the least recently used goes first, into the first tier below, and from there into
/// the next. What a prompt begins with is brought back from wherever it is; a copy stays there. Of
/// models with recurrent layers a request has blocks for its states too, and each piece for a copy
/// of those at its end.
class KvPool {
 public:
  explicit KvPool(const KvRules& rules);

  std::int64_t blocks() const { return rules_.blocks; }
  std::int64_t block_tokens() const { return rules_.block_tokens; }
  /// Blocks that somebody may take: those that nobody holds, kept pieces included.
  std::int64_t available() const { return free_ + idle_; }
  std::int64_t used() const { return rules_.blocks - available(); }
  /// Blocks that a sequence of so many tokens fills or begins.
  std::int64_t blocks_of(std::int64_t tokens) const {
    if (rules_.most_kept > 0) tokens = std::min(tokens, rules_.most_kept);
    return (tokens + rules_.block_tokens - 1) / rules_.block_tokens;
  }
  /// Whether a request fits when it is alone, at its longest: its last token needs no place.
  bool fits_alone(const Request& request) const {
    const std::int64_t tokens = request.prompt + request.output - 1 + rules_.draft_tokens;
    return blocks_of(tokens) + windows_of(tokens, 1) + running_states() <= rules_.blocks;
  }
  /// Blocks that the windows of a sequence take behind `step` new tokens, each of which sees a
  /// window: what lies before the window of the first of them is free by then.
  std::int64_t windows_of(std::int64_t tokens, std::int64_t step) const;
  std::int64_t draft_tokens() const { return rules_.draft_tokens; }

  /// Takes what is kept of the prefix of a request without a cache: its `cached` grows by that. At
  /// least one token of the prompt stays to be computed.
  void find_prefix(RequestState& progress);
  /// Gives back what find_prefix() took, for a request that does not join after all.
  void put_back(RequestState& progress);
  /// Tokens of a prompt that are kept, and need not be computed.
  std::int64_t kept(const Request& request) const;
  /// The hash of the first piece of a prompt that a request does not hold yet. None where the
  /// prompt has no more whole pieces, or layers have windows.
  std::optional<std::uint64_t> next_piece(const RequestState& progress) const;
  /// What a request has computed of its prompt is there for others from now on.
  void publish(RequestState& progress) {
    if (caches(progress.request)) share(progress);
  }
  /// Blocks that a request needs beyond those it holds, to have `tokens` more in its cache. Less
  /// than 0 where its windows give more back.
  std::int64_t lacking(const RequestState& progress, std::int64_t tokens) const {
    return lacking(progress, tokens, tokens);
  }
  /// The same for tokens that come in iterations of `step` tokens at most.
  std::int64_t lacking(const RequestState& progress, std::int64_t tokens, std::int64_t step) const;
  /// Publishes, then makes room for `tokens` more in the cache of a request, and for the draft
  /// tokens of one that decodes. False: no room, and nothing is done.
  bool grow(RequestState& progress, std::int64_t tokens);
  /// Time to bring back what was found in tiers since the last call: of all tiers at once.
  Seconds take_load_time();
  /// Tokens that were brought back.
  std::int64_t loaded_tokens() const { return loaded_tokens_; }
  /// Gives all back that a request holds and empties its cache.
  void release(RequestState& progress);

 private:
  struct Piece {
    std::int64_t holders = 0;
    std::list<std::uint64_t>::iterator idle;  ///< where it stands in idle pieces, without holders
  };

  /// Pieces in a tier, the least recently used first.
  struct Tier {
    std::list<std::uint64_t> order;
    std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> pieces;
    std::int64_t loading = 0;  ///< tokens found since the last take_load_time()
  };

  /// Blocks of the states of a request.
  std::int64_t running_states() const { return rules_.states_apart ? 0 : rules_.state_blocks; }
  /// Blocks that a piece takes where it is kept: those of its tokens and of the state behind them.
  std::int64_t kept_blocks() const { return piece_blocks_ + rules_.state_blocks; }
  bool caches(const Request& request);
  void keep_below(std::uint64_t hash);
  bool bring_back(std::uint64_t hash);
  std::uint64_t hash_of(const Request& request, std::int64_t piece) const;
  void hold(Piece& piece);
  void share(RequestState& progress);
  void make_room(std::int64_t blocks);

  KvRules rules_;
  std::int64_t free_;      ///< blocks without content
  std::int64_t idle_ = 0;  ///< blocks of pieces that nobody holds
  std::unordered_map<std::uint64_t, Piece> pieces_;
  std::list<std::uint64_t> idle_pieces_;  ///< pieces without holders, the next to go first
  /// Tokens of each piece: whole blocks, and whole pieces of requests, as many as there are at
  /// least between states.
  std::int64_t piece_tokens_ = 0;
  std::int64_t piece_blocks_ = 0;  ///< blocks of its tokens
  std::vector<Tier> tiers_;
  std::int64_t loaded_tokens_ = 0;
};

}  // namespace orrery
