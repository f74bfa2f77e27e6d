// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// When the last of many jobs starts, in units of the longest job: `jobs_per_server` jobs a server,
/// lengths uniform between `shortest` and 1, each server taking the next job when it is free. The
/// number of jobs started by time t is 1 + m(t) a server, m being the renewal function of the
/// lengths (Cox, Renewal Theory, 1962); this is its inverse. Equal jobs (shortest = 1) give waves:
/// ceil(jobs_per_server) - 1. 0 for no more jobs than servers.
double last_start(double jobs_per_server, double shortest);

/// Time to run jobs that are handed out in that way.
/// @param longest length of the longest job
/// @param work of all jobs together, as time of one server
double makespan(double jobs, double servers, double longest, double work);

}  // namespace orrery
