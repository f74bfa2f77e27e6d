// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace orrery {

/// The points that no other one dominates: is at least as good in all and better in one. Points
/// that are alike in all are all on the front. At most three objectives take O(n log n) (Kung,
/// Luccio and Preparata, JACM 22(4), 1975), more take n times the front.
/// @param objectives columns, less being better; no entry is not a number
/// @return indices of points, ascending
std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& objectives);

/// The volume between points and a reference that is worse than they are: what they dominate of it
/// (Zitzler and Thiele, IEEE Trans. Evol. Comput. 3(4), 1999). Points that are not better than the
/// reference in every objective add nothing. By slices of the last objective: n^(m - 1) log n for n
/// points of the front and m objectives.
/// @param objectives columns, less being better @param reference one value for each
double hypervolume(const std::vector<std::vector<double>>& objectives,
                   const std::vector<double>& reference);

}  // namespace orrery
