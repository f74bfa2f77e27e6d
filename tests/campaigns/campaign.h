// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/results/record_bytes.h"
#include "sim/store/result_store.h"

namespace orrery {

/// A number of the environment: campaigns are short unless it says otherwise.
inline int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// Memory that all processes of a test see.
template <class T>
class Shared {
 public:
  Shared()
      : at_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0)) T()) {}
  ~Shared() { ::munmap(at_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() { return *at_; }

 private:
  T* at_;
};

/// Runs the body in a child. @return its exit code: that of what it throws, as the program
/// would return it; -1: it was killed
template <class Body>
int code_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
      ::_exit(0);
    } catch (...) {
      ::_exit(static_cast<int>(classify(std::current_exception()).code));
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum class RunCount { kOnce, kAnyNumber };

/// What a store says of its points, by identity: each as it is read, checksums checked.
/// @param runs kOnce: that a point ran more than once is part of it
inline std::map<std::string, std::string> contents_of(const std::filesystem::path& path,
                                                      RunCount runs = RunCount::kOnce) {
  const ResultStore store = ResultStore::open_read_only(path);
  store.verify();
  std::map<std::string, std::string> contents;
  store.for_each([&](const RunRecord& record) {
    const std::size_t n = store.times(record.identity).size();
    std::string text = record.name + to_string(record.status) + record.reason +
                       result_digest(record) + record.configuration().dump();
    if (runs == RunCount::kOnce && n != 1) text += " ran " + std::to_string(n) + " times";
    EXPECT_TRUE(contents.emplace(record.identity, std::move(text)).second) << "doubled";
  });
  return contents;
}

}  // namespace orrery
