// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sim/machine/kernel_fit.h"

namespace orrery {

/// What a fit is about, known before it is read.
struct FitSubject {
  Precision precision = Precision::kBf16;
  std::vector<std::string> groups;  ///< what the names of its parameters begin with: "gemm"
};

/// The fits of a calibration. A file has a dozen, of which one experiment needs one or two: a fit
/// is read when it is first used, once for all copies. Reading is safe from several threads.
class KernelFits {
 public:
  using Reader = std::function<KernelFit()>;

  template <class Owner, class Fit>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = KernelFit;
    using difference_type = std::ptrdiff_t;
    using pointer = Fit*;
    using reference = Fit&;

    Iterator() = default;
    Iterator(Owner* owner, std::size_t at) : owner_(owner), at_(at) {}
    Fit& operator*() const { return owner_->at(at_); }
    Fit* operator->() const { return &owner_->at(at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    Owner* owner_ = nullptr;
    std::size_t at_ = 0;
  };
  using const_iterator = Iterator<const KernelFits, const KernelFit>;
  using iterator = Iterator<KernelFits, KernelFit>;

  KernelFits() = default;
  KernelFits(std::initializer_list<KernelFit> fits);

  void push_back(KernelFit fit);
  /// Appends a fit that `reader` gives when it is asked for.
  void add(FitSubject subject, Reader reader);

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  /// Precision and groups; as add() was told while the fit has not been read.
  FitSubject subject(std::size_t index) const;
  bool is_read(std::size_t index) const;

  /// @throws std::out_of_range; what the reader throws, at every call
  const KernelFit& at(std::size_t index) const;
  /// The fit of this copy alone, to change it.
  KernelFit& at(std::size_t index);
  const KernelFit& operator[](std::size_t index) const { return at(index); }
  KernelFit& operator[](std::size_t index) { return at(index); }
  const KernelFit& front() const { return at(0); }
  KernelFit& front() { return at(0); }

  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size()}; }
  iterator begin() { return {this, 0}; }
  iterator end() { return {this, size()}; }

 private:
  struct Entry;
  std::vector<std::shared_ptr<Entry>> entries_;  ///< shared with copies until they change
};

}  // namespace orrery
