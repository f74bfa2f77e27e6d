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

/// Rows of queries and columns of keys of a tile of attention over prompts.
struct PromptTile {
  double rows = 0, columns = 0;
};

/// What a sequence sees: its new tokens, earlier ones before them, and the window; 0: all.
struct SeenTokens {
  double query = 0, prefix = 0, window = 0;
};

/// Steps of one tile.
struct TileSteps {
  double count = 0, cut = 0;  ///< all steps; those whose keys lie partly outside the window
};
/// Earlier tokens are as many steps more as they fill, parts of one included: how they lie in the
/// blocks of columns is not known of a prompt among others.
TileSteps tile_steps(double tile_index, const SeenTokens& seen, PromptTile tile);

/// Steps of the tiles of one head.
struct PromptSteps {
  double before = 0, most = 0;  ///< steps of all tiles but the last; of the longest of them
  double last = 0;              ///< steps of the last tile
  double masked_before = 0, masked_most = 0, masked_last = 0;  ///< steps that the window cuts
};
/// In closed form without a window, where columns are at most twice the rows.
PromptSteps prompt_steps(const SeenTokens& seen, PromptTile tile);

}  // namespace orrery
