// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <memory>

namespace orrery {

/// While it lives, control characters that are written to a stream of this process come out as
/// printable() has them: names and messages hold what files say, and a terminal obeys it. Lines and
/// tabs stay.
class PrintableStream {
 public:
  explicit PrintableStream(std::ostream& stream);
  ~PrintableStream();
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 private:
  class Buffer;
  std::ostream& stream_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace orrery
