// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/iterator/transform_iterator.hpp>
#include <cstddef>
#include <functional>
#include <initializer_list>
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

  KernelFits() = default;
  KernelFits(std::initializer_list<KernelFit> fits);

  void push_back(KernelFit fit);
  /// Appends a fit that `reader` gives when it is asked for.
  void add(FitSubject subject, Reader reader);
  /// Appends the fits of another calibration, read or not.
  void append(const KernelFits& other);

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  /// Precision and groups; as add() was told while the fit has not been read.
  FitSubject subject(std::size_t index) const;
  bool is_read(std::size_t index) const;

  /// @throws std::out_of_range; what the reader throws, at every call
  const KernelFit& at(std::size_t index) const { return read(entries_.at(index)); }
  /// The fit of this copy alone, to change it.
  KernelFit& at(std::size_t index) { return own(entries_.at(index)); }
  const KernelFit& operator[](std::size_t index) const { return at(index); }
  KernelFit& operator[](std::size_t index) { return at(index); }
  const KernelFit& front() const { return at(0); }
  KernelFit& front() { return at(0); }

  auto begin() const { return boost::make_transform_iterator(entries_.begin(), &read); }
  auto end() const { return boost::make_transform_iterator(entries_.end(), &read); }
  auto begin() { return boost::make_transform_iterator(entries_.begin(), &own); }
  auto end() { return boost::make_transform_iterator(entries_.end(), &own); }

 private:
  struct Entry;
  static const KernelFit& read(const std::shared_ptr<Entry>& entry);
  static KernelFit& own(std::shared_ptr<Entry>& entry);

  std::vector<std::shared_ptr<Entry>> entries_;  ///< shared with copies until they change
};

}  // namespace orrery
