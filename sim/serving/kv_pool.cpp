// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/kv_pool.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/units/hash.h"

namespace orrery {

KvPool::KvPool(const KvRules& rules)
    : rules_(rules), free_(rules.blocks), tiers_(rules.tiers.size()) {}

/// Whether pieces of the prompt are kept. All requests of a run tell pieces of one length.
bool KvPool::caches(const Request& request) {
  if (!rules_.prefix_caching || request.prefix == nullptr) return false;
  if (piece_tokens_ == 0) {
    piece_tokens_ = std::lcm(request.prefix->tokens, rules_.block_tokens);
    // Hashes are not told at each place where a state is kept: the next one behind it.
    piece_tokens_ *=
        std::max<std::int64_t>(1, (rules_.state_tokens + piece_tokens_ - 1) / piece_tokens_);
    piece_blocks_ = piece_tokens_ / rules_.block_tokens;
  }
  return true;
}

/// The hash of the last of the request's pieces in a piece of the pool. Adapters share none: keys
/// and values are those of the adapter (vLLM has its name in the hash of a block).
std::uint64_t KvPool::hash_of(const Request& request, std::int64_t piece) const {
  const PrefixHashes& prefix = *request.prefix;
  const std::uint64_t hash =
      prefix.pieces[static_cast<std::size_t>((piece + 1) * (piece_tokens_ / prefix.tokens) - 1)];
  if (request.adapter < 0) return hash;
  std::uint64_t state = hash ^ static_cast<std::uint64_t>(request.adapter);
  return next_random(state);
}

void KvPool::hold(Piece& piece) {
  if (piece.holders++ > 0) return;
  idle_pieces_.erase(piece.idle);
  idle_ -= kept_blocks();
}

void KvPool::find_prefix(RequestState& progress) {
  if (progress.moved > 0 || !caches(progress.request)) return;
  const PrefixHashes& prefix = *progress.request.prefix;
  const std::int64_t whole = static_cast<std::int64_t>(prefix.pieces.size()) * prefix.tokens;
  const std::int64_t computed = progress.request.prompt + progress.produced - 1;
  const std::int64_t most = std::min(whole, computed) / piece_tokens_;
  while (progress.shared < most) {
    const auto known = pieces_.find(hash_of(progress.request, progress.shared));
    if (known != pieces_.end()) {
      hold(known->second);
    } else if (!bring_back(hash_of(progress.request, progress.shared))) {
      break;
    }
    ++progress.shared;
  }
  progress.cached = progress.shared * piece_tokens_;
}

/// What came from another instance has blocks already, and keeps them.
void KvPool::put_back(RequestState& progress) {
  if (progress.moved == 0) release(progress);
}

std::int64_t KvPool::kept(const Request& request) const {
  if (!rules_.prefix_caching || request.prefix == nullptr || piece_tokens_ == 0) return 0;
  const PrefixHashes& prefix = *request.prefix;
  const std::int64_t whole = static_cast<std::int64_t>(prefix.pieces.size()) * prefix.tokens;
  const std::int64_t most = std::min(whole, request.prompt - 1) / piece_tokens_;
  std::int64_t pieces = 0;
  while (pieces < most && pieces_.contains(hash_of(request, pieces))) ++pieces;
  return pieces * piece_tokens_;
}

std::optional<std::uint64_t> KvPool::next_piece(const RequestState& progress) const {
  const PrefixHashes* prefix = progress.request.prefix.get();
  if (!rules_.prefix_caching || prefix == nullptr || piece_tokens_ == 0 || rules_.window > 0)
    return std::nullopt;
  const std::int64_t whole = static_cast<std::int64_t>(prefix->pieces.size()) * prefix->tokens;
  if ((progress.shared + 1) * piece_tokens_ > whole) return std::nullopt;
  return hash_of(progress.request, progress.shared);
}

/// A piece goes into the first tier, whose oldest goes into the next.
void KvPool::keep_below(std::uint64_t hash) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    Tier& tier = tiers_[i];
    const auto known = tier.pieces.find(hash);
    if (known != tier.pieces.end()) tier.order.erase(known->second);
    tier.pieces[hash] = tier.order.insert(tier.order.end(), hash);
    if (static_cast<std::int64_t>(tier.pieces.size()) * piece_tokens_ <= rules_.tiers[i].tokens)
      return;
    hash = tier.order.front();
    tier.order.pop_front();
    tier.pieces.erase(hash);
  }
}

/// Gives a piece that a tier has blocks again. False: none has it, or there is no room.
bool KvPool::bring_back(std::uint64_t hash) {
  for (Tier& tier : tiers_) {
    const auto known = tier.pieces.find(hash);
    if (known == tier.pieces.end()) continue;
    if (kept_blocks() > available()) return false;
    tier.order.splice(tier.order.end(), tier.order, known->second);
    tier.loading += piece_tokens_;
    loaded_tokens_ += piece_tokens_;
    make_room(kept_blocks());
    free_ -= kept_blocks();
    pieces_[hash].holders = 1;
    return true;
  }
  return false;
}

Seconds KvPool::take_load_time() {
  Seconds longest{};
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const std::int64_t tokens = std::exchange(tiers_[i].loading, 0);
    if (tokens == 0) continue;
    const KvTierRules& rules = rules_.tiers[i];
    longest = std::max(longest, rules.latency + rules.token * static_cast<double>(tokens));
  }
  return longest;
}

void KvPool::make_room(std::int64_t blocks) {
  while (free_ < blocks) {
    if (!tiers_.empty()) keep_below(idle_pieces_.front());
    pieces_.erase(idle_pieces_.front());
    idle_pieces_.pop_front();
    idle_ -= kept_blocks();
    free_ += kept_blocks();
  }
}

/// Pieces of the prompt that its own blocks now hold in whole are there for others too. One that
/// somebody else has meanwhile computed, and all after it, stay its own, and so does one for whose
/// state there is no room.
void KvPool::share(RequestState& progress) {
  const PrefixHashes& prefix = *progress.request.prefix;
  const std::int64_t whole = static_cast<std::int64_t>(prefix.pieces.size()) * prefix.tokens;
  const std::int64_t computed = std::min(whole, progress.cached) / piece_tokens_;
  while (progress.shared < computed) {
    if (available() < rules_.state_blocks) return;
    const auto [piece, added] = pieces_.try_emplace(hash_of(progress.request, progress.shared));
    if (!added) return;
    piece->second.holders = 1;
    make_room(rules_.state_blocks);
    free_ -= rules_.state_blocks;
    progress.blocks -= piece_blocks_;
    ++progress.shared;
  }
}

std::int64_t KvPool::windows_of(std::int64_t tokens, std::int64_t step) const {
  if (rules_.window == 0) return 0;
  const auto kept = static_cast<double>(std::min(tokens, rules_.window - 1 + step));
  return static_cast<std::int64_t>(
      std::ceil(kept * rules_.window_blocks / static_cast<double>(rules_.window)));
}

std::int64_t KvPool::lacking(const RequestState& progress, std::int64_t tokens,
                             std::int64_t step) const {
  const std::int64_t draft_tokens = progress.decodes() ? rules_.draft_tokens : 0;
  const std::int64_t all = progress.cached + tokens + draft_tokens;
  const std::int64_t held =
      progress.blocks - progress.states - progress.windows + progress.shared * piece_blocks_;
  return std::max<std::int64_t>(0, blocks_of(all) - held) + running_states() - progress.states +
         windows_of(all, step + draft_tokens) - progress.windows;
}

bool KvPool::grow(RequestState& progress, std::int64_t tokens) {
  publish(progress);
  const std::int64_t more = lacking(progress, tokens);
  if (more > available()) return false;
  make_room(more);
  free_ -= more;
  progress.blocks += more;
  progress.states = running_states();
  const std::int64_t draft_tokens = progress.decodes() ? rules_.draft_tokens : 0;
  progress.windows = windows_of(progress.cached + tokens + draft_tokens, tokens + draft_tokens);
  return true;
}

void KvPool::release(RequestState& progress) {
  if (caches(progress.request)) {
    share(progress);
    // The last piece first: it is of no use without those before it, and so goes first.
    for (std::int64_t i = progress.shared; i-- > 0;) {
      const std::uint64_t hash = hash_of(progress.request, i);
      Piece& piece = pieces_.at(hash);
      if (--piece.holders > 0) continue;
      piece.idle = idle_pieces_.insert(idle_pieces_.end(), hash);
      idle_ += kept_blocks();
    }
  }
  free_ += progress.blocks;
  progress.blocks = progress.states = progress.windows = progress.shared = progress.cached =
      progress.moved = 0;
}

}  // namespace orrery
