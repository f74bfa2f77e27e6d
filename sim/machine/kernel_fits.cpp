// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/kernel_fits.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace orrery {

struct KernelFits::Entry {
  FitSubject subject;
  Reader reader;
  std::once_flag once;
  std::optional<KernelFit> fit;
};

namespace {

FitSubject subject_of(const KernelFit& fit) {
  FitSubject subject{fit.precision, {}};
  for (const auto& [name, parameter] : fit.parameters) {
    const std::string group = name.substr(0, name.find('.'));
    if (subject.groups.empty() || subject.groups.back() != group) subject.groups.push_back(group);
  }
  return subject;
}

}  // namespace

KernelFits::KernelFits(std::initializer_list<KernelFit> fits) {
  for (const KernelFit& fit : fits) push_back(fit);
}

void KernelFits::push_back(KernelFit fit) {
  auto entry = std::make_shared<Entry>();
  entry->fit = std::move(fit);
  entries_.push_back(std::move(entry));
}

void KernelFits::add(FitSubject subject, Reader reader) {
  auto entry = std::make_shared<Entry>();
  entry->subject = std::move(subject);
  entry->reader = std::move(reader);
  entries_.push_back(std::move(entry));
}

void KernelFits::append(const KernelFits& other) {
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
}

FitSubject KernelFits::subject(std::size_t index) const {
  const Entry& entry = *entries_.at(index);
  return entry.reader ? entry.subject : subject_of(*entry.fit);
}

bool KernelFits::is_read(std::size_t index) const { return !entries_.at(index)->reader; }

const KernelFit& KernelFits::read(const std::shared_ptr<Entry>& entry) {
  std::call_once(entry->once, [&] {
    if (entry->reader) entry->fit = entry->reader();
  });
  return *entry->fit;
}

KernelFit& KernelFits::own(std::shared_ptr<Entry>& entry) {
  read(entry);
  if (entry.use_count() > 1) {
    auto copy = std::make_shared<Entry>();
    copy->fit = entry->fit;
    entry = std::move(copy);
  }
  entry->reader = nullptr;
  return *entry->fit;
}

}  // namespace orrery
