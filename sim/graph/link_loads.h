// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace orrery {

/// What a transfer takes of one link.
struct LinkLoad {
  std::uint32_t link = 0;
  double bytes = 0;    ///< bytes that the link could have carried in that time
  double payload = 0;  ///< bytes that it does carry: less where protocols are slower than links
};

/// Loads of links in the order in which they were added. Neighbours that carry the same are kept as
/// one: a collective over 800,000 ranks loads millions of links in a few ways.
class LinkLoads {
  /// Links first, first + 1, ... that are loaded alike.
  struct Run {
    std::uint32_t first;
    std::uint32_t count;
    double bytes;
    double payload;
  };

 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = LinkLoad;
    using difference_type = std::ptrdiff_t;
    using pointer = const LinkLoad*;
    using reference = LinkLoad;

    Iterator(const Run* run, std::uint32_t number) : run_(run), number_(number) {}
    LinkLoad operator*() const { return {run_->first + number_, run_->bytes, run_->payload}; }
    Iterator& operator++() {
      if (++number_ == run_->count) {
        ++run_;
        number_ = 0;
      }
      return *this;
    }
    bool operator==(const Iterator& other) const = default;

   private:
    const Run* run_;
    std::uint32_t number_;
  };
  using value_type = LinkLoad;
  using const_iterator = Iterator;

  LinkLoads() = default;
  LinkLoads(std::initializer_list<LinkLoad> loads) {
    for (const LinkLoad& load : loads) push_back(load);
  }
  LinkLoads(const std::vector<LinkLoad>& loads) {  // NOLINT(google-explicit-constructor)
    for (const LinkLoad& load : loads) push_back(load);
  }

  void push_back(const LinkLoad& load) {
    ++size_;
    if (!runs_.empty() && continues(runs_.back(), load)) {
      ++runs_.back().count;
    } else {
      runs_.push_back({load.link, 1, load.bytes, load.payload});
    }
  }

  bool empty() const { return size_ == 0; }
  /// Links, one counted as often as it was added.
  std::size_t size() const { return size_; }
  /// What is kept of them.
  std::size_t runs() const { return runs_.size(); }
  Iterator begin() const { return {runs_.data(), 0}; }
  Iterator end() const { return {runs_.data() + runs_.size(), 0}; }
  LinkLoad front() const { return *begin(); }

  /// Calls change(LinkLoad&) for each.
  template <class Change>
  void change(const Change& change) {
    LinkLoads changed;
    for (LinkLoad load : *this) {
      change(load);
      changed.push_back(load);
    }
    *this = std::move(changed);
  }

 private:
  static bool continues(const Run& run, const LinkLoad& load) {
    return load.link == run.first + run.count && load.bytes == run.bytes &&
           load.payload == run.payload;
  }

  std::vector<Run> runs_;
  std::size_t size_ = 0;
};

}  // namespace orrery
