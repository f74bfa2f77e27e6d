// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/printable_stream.h"

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "sim/units/printable.h"

namespace orrery {

/// Writes to the buffer that it stands before.
class PrintableStream::Buffer final : public std::streambuf {
 public:
  explicit Buffer(std::streambuf& behind) : behind_(behind) {}
  ~Buffer() override { end_character(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::streambuf& behind() const { return behind_; }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return write({&one, 1}) ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return write({text, static_cast<std::size_t>(size)}) ? size : 0;
  }
  int sync() override { return end_character() && behind_.pubsync() == 0 ? 0 : -1; }

 private:
  static constexpr char kC1Lead = '\xC2';  // of control characters of two bytes

  bool write(std::string_view text) {
    if (text.empty()) return true;
    std::string whole = begun_ ? std::string(1, kC1Lead) : std::string();
    whole += text;
    begun_ = whole.back() == kC1Lead;
    if (begun_) whole.pop_back();
    return put(printable(whole, "\n\t"));
  }

  /// Passes on the bytes of a character whose last byte has not arrived.
  bool end_character() {
    const bool begun = begun_;
    begun_ = false;
    return !begun || put({&kC1Lead, 1});
  }

  bool put(std::string_view text) {
    const auto size = static_cast<std::streamsize>(text.size());
    return behind_.sputn(text.data(), size) == size;
  }

  std::streambuf& behind_;
  bool begun_ = false;  ///< the last byte was the first of two
};

PrintableStream::PrintableStream(std::ostream& stream)
    : stream_(stream), buffer_(std::make_unique<Buffer>(*stream.rdbuf())) {
  stream_.rdbuf(buffer_.get());
}

PrintableStream::~PrintableStream() {
  stream_.flush();
  stream_.rdbuf(&buffer_->behind());
}

}  // namespace orrery
