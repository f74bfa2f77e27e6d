// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/exit_codes.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "sim/config/diagnostics.h"
#include "sim/replay/replay.h"
#include "sim/store/result_store.h"

namespace orrery {
namespace {

/// A file that is not a store of ours is the user's choice; a full disk is not.
ExitCode code_of(StoreFault fault) {
  const bool chosen = fault == StoreFault::kForeign || fault == StoreFault::kVersion ||
                      fault == StoreFault::kUnreachable;
  return chosen ? ExitCode::kUsage : ExitCode::kResource;
}

/// A path that does not exist or may not be used is the user's input.
ExitCode code_of(const std::error_code& code) {
  const bool path = code == std::errc::no_such_file_or_directory ||
                    code == std::errc::not_a_directory || code == std::errc::is_a_directory ||
                    code == std::errc::permission_denied;
  return path ? ExitCode::kUsage : ExitCode::kResource;
}

}  // namespace

void throw_errno(const std::string& what) {
  throw ResourceError(what + ": " + std::strerror(errno));
}

Failure classify(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const config::ConfigError& e) {
    const std::string text = e.what();
    // A rendering of diagnostics says "error:" itself, after the place it is about.
    return {ExitCode::kUsage, e.diagnostics().empty() ? "error: " + text : text};
  } catch (const PointFailure& e) {
    return {e.code, e.what()};
  } catch (const UsageError& e) {
    return {ExitCode::kUsage, std::string("error: ") + e.what()};
  } catch (const DeterminismError& e) {
    return {ExitCode::kDeterminism, std::string("error: ") + e.what()};
  } catch (const StoreError& e) {
    return {code_of(e.fault()), std::string("error: ") + e.what()};
  } catch (const ResourceError& e) {
    return {ExitCode::kResource, std::string("error: ") + e.what()};
  } catch (const std::system_error& e) {
    return {code_of(e.code()), std::string("error: ") + e.what()};
  } catch (const std::bad_alloc&) {
    return {ExitCode::kResource, "error: out of memory"};
  } catch (const LinkDownError& e) {
    return {ExitCode::kInfeasible, std::string("error: ") + e.what()};
  } catch (const std::overflow_error& e) {  // of simulated time
    return {ExitCode::kInfeasible, std::string("error: ") + e.what()};
  } catch (const DeadlockError& e) {
    return {ExitCode::kBug, std::string("error: deadlock: ") + e.what()};
  } catch (const std::exception& e) {
    return {ExitCode::kBug, std::string("internal error: ") + e.what()};
  } catch (...) {
    return {ExitCode::kBug, "internal error: unknown"};
  }
}

}  // namespace orrery
