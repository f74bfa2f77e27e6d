// SPDX-License-Identifier: Apache-2.0
#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

const TraceFormats::Register registered_vidur(
    "vidur", "traces of the simulator Vidur: arrived_at, num_prefill_tokens, num_decode_tokens",
    {[](std::string_view head) { return head.find("num_prefill_tokens") < head.find('\n'); },
     [](const TraceText& trace) {
       return read_trace_columns(
           trace, {"arrived_at", "num_prefill_tokens", "num_decode_tokens", trace_time});
     }});

}  // namespace
}  // namespace orrery
