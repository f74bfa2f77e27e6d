// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/image_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "workloads/base/real.h"

namespace orrery {
namespace {

std::int64_t up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// As Python rounds: halves to the even neighbour.
std::int64_t nearest(double value) { return std::llrint(value); }

ImagePatches grid_of(std::int64_t height, std::int64_t width, std::int64_t patch,
                     std::int64_t merge) {
  ImagePatches image;
  image.rows = height / patch;
  image.columns = width / patch;
  image.tokens = image.rows * image.columns / (merge * merge);
  return image;
}

ImagePatches square(const ImageRule& rule, std::int64_t patch, std::int64_t merge, ImageSize) {
  return grid_of(rule.side, rule.side, patch, merge);
}

/// smart_resize of transformers' image_processing_qwen2_vl.py.
ImagePatches within_pixels(const ImageRule& rule, std::int64_t patch, std::int64_t merge,
                           ImageSize image) {
  const std::int64_t unit = patch * merge;
  const double height = real(image.height), width = real(image.width), f = real(unit);
  std::int64_t h = nearest(height / f) * unit, w = nearest(width / f) * unit;
  if (h * w > rule.most) {
    const double by = std::sqrt(height * width / real(rule.most));
    h = std::max(unit, static_cast<std::int64_t>(std::floor(height / by / f)) * unit);
    w = std::max(unit, static_cast<std::int64_t>(std::floor(width / by / f)) * unit);
  } else if (h * w < rule.least) {
    const double by = std::sqrt(real(rule.least) / (height * width));
    h = static_cast<std::int64_t>(std::ceil(height * by / f)) * unit;
    w = static_cast<std::int64_t>(std::ceil(width * by / f)) * unit;
  }
  return grid_of(std::max(h, unit), std::max(w, unit), patch, merge);
}

/// navit_resize_image of Kimi's media_utils.py; image_processing_kimi_vl.py has no limit of a side.
ImagePatches within_patches(const ImageRule& rule, std::int64_t patch, std::int64_t merge,
                            ImageSize image) {
  const double across = real(std::max<std::int64_t>(1, image.width / patch));
  const double down = real(std::max<std::int64_t>(1, image.height / patch));
  const double side = real(rule.longest * patch);
  const double scale = std::min({1.0, std::sqrt(real(rule.most) / (across * down)),
                                 side / real(image.width), side / real(image.height)});
  const auto scaled = [&](std::int64_t pixels) {
    return up(std::max<std::int64_t>(1, static_cast<std::int64_t>(real(pixels) * scale)),
              patch * merge);
  };
  return grid_of(scaled(image.height), scaled(image.width), patch, merge);
}

/// get_aspect_ratio_preserving_size of transformers' image_processing_gemma4.py; what is left of
/// the budget is padding.
ImagePatches within_budget(const ImageRule& rule, std::int64_t patch, std::int64_t merge,
                           ImageSize image) {
  const std::int64_t unit = patch * merge, patches = rule.most * merge * merge;
  const double height = real(image.height), width = real(image.width);
  const double by = std::sqrt(real(patches * patch * patch) / (height * width));
  const auto down = [&](double pixels) {
    return static_cast<std::int64_t>(std::floor(pixels / real(unit))) * unit;
  };
  std::int64_t h = down(height * by), w = down(width * by);
  const std::int64_t longest = rule.most * unit;
  if (h == 0) {
    h = unit;
    w = std::clamp(static_cast<std::int64_t>(width / height) * unit, unit, longest);
  } else if (w == 0) {
    w = unit;
    h = std::clamp(static_cast<std::int64_t>(height / width) * unit, unit, longest);
  }
  ImagePatches result = grid_of(h, w, patch, merge);
  result.padding = patches - result.patches();
  return result;
}

/// transformers' image_processing_pixtral.py: get_resize_output_image_size.
ImagePatches within_longest(const ImageRule& rule, std::int64_t patch, std::int64_t merge,
                            ImageSize image) {
  const double by = std::max(1.0, real(std::max(image.height, image.width)) / real(rule.longest));
  const auto scaled = [&](std::int64_t pixels) {
    const auto smaller = static_cast<std::int64_t>(std::floor(real(pixels) / by));
    return up(std::max<std::int64_t>(1, smaller), patch * merge);
  };
  return grid_of(scaled(image.height), scaled(image.width), patch, merge);
}

/// Rows and columns of tiles.
struct Grid {
  std::int64_t rows = 1, columns = 1;
  std::int64_t tiles() const { return rows * columns; }
};

/// find_closest_aspect_ratio of InternVL's model card: grids in the order of their tiles, of equals
/// the larger where the image fills half of it.
Grid nearest_grid(const ImageRule& rule, ImageSize image) {
  const double shape = real(image.width) / real(image.height);
  const double area = real(image.width) * real(image.height);
  Grid best;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t tiles = std::max<std::int64_t>(1, rule.least); tiles <= rule.most; ++tiles) {
    for (std::int64_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const Grid grid{tiles / columns, columns};
      const double off = std::abs(shape - real(grid.columns) / real(grid.rows));
      const bool fills = area > 0.5 * real(rule.side * rule.side * tiles);
      if (off < least || (off == least && fills)) {
        least = off;
        best = grid;
      }
    }
  }
  return best;
}

/// get_best_fit of transformers' image_processing_llama4_fast.py: the least enlargement, else the
/// least reduction, and of equals the smallest canvas.
Grid fitting_grid(const ImageRule& rule, ImageSize image) {
  Grid best;
  double chosen = 0;
  for (std::int64_t tiles = 1; tiles <= rule.most; ++tiles) {
    for (std::int64_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const Grid grid{tiles / columns, columns};
      const double scale = std::min(real(grid.columns * rule.side) / real(image.width),
                                    real(grid.rows * rule.side) / real(image.height));
      const bool better = chosen == 0                 ? true
                          : scale >= 1 && chosen >= 1 ? scale < chosen
                                                      : scale > chosen;
      if (better) {
        chosen = scale;
        best = grid;
      }
    }
  }
  return best;
}

/// HD_transform of Phi-3.5-vision's processing_phi3_v.py: the longer side has most tiles.
Grid widest_grid(const ImageRule& rule, ImageSize image) {
  const double longer = real(std::max(image.height, image.width));
  const double ratio = longer / real(std::min(image.height, image.width));
  std::int64_t across = 1;
  while (real(across + 1) * std::ceil(real(across + 1) / ratio) <= real(rule.most)) ++across;
  const auto height = static_cast<std::int64_t>(real(across * rule.side) / ratio);
  const std::int64_t down = up(std::max<std::int64_t>(1, height), rule.side) / rule.side;
  return image.width < image.height ? Grid{across, down} : Grid{down, across};
}

/// select_best_resolution of transformers' image_processing_utils.py: the most pixels of the image,
/// then the fewest of padding.
Grid listed_grid(const ImageRule& rule, ImageSize image) {
  ImageSize best = rule.listed.front();
  std::int64_t most = -1, least_waste = 0;
  for (const ImageSize& size : rule.listed) {
    const double scale =
        std::min(real(size.width) / real(image.width), real(size.height) / real(image.height));
    const auto scaled = [scale](std::int64_t pixels) {
      return static_cast<std::int64_t>(real(pixels) * scale);
    };
    const std::int64_t kept =
        std::min(scaled(image.width) * scaled(image.height), image.width * image.height);
    const std::int64_t waste = size.width * size.height - kept;
    if (kept > most || (kept == most && waste < least_waste)) {
      most = kept;
      least_waste = waste;
      best = size;
    }
  }
  return {best.height / rule.side, best.width / rule.side};
}

/// Tokens of what of a padded canvas is the image, with one more for each row
/// (_get_unpadded_features of transformers' processing_llava_next.py).
std::int64_t unpadded_tokens(Grid grid, std::int64_t side, ImageSize image) {
  std::int64_t height = grid.rows * side, width = grid.columns * side;
  const double shape = real(image.width) / real(image.height);
  if (shape > real(width) / real(height)) {
    const auto filled =
        static_cast<std::int64_t>(real(image.height) * (real(width) / real(image.width)));
    height -= (height - filled) / 2 * 2;
  } else {
    const auto filled =
        static_cast<std::int64_t>(real(image.width) * (real(height) / real(image.height)));
    width -= (width - filled) / 2 * 2;
  }
  return height * width + height;
}

/// Tiles in a grid, and one of the whole image; what stands between their tokens by the model.
ImagePatches tiles_of(const ImageRule& rule, std::int64_t patch, std::int64_t merge,
                      ImageSize image) {
  ImagePatches result = square(rule, patch, merge, image);
  const std::int64_t of_tile = result.tokens, side = rule.side / patch / merge;
  const Grid grid = rule.fit == ImageFit::kNearestGrid   ? nearest_grid(rule, image)
                    : rule.fit == ImageFit::kFittingGrid ? fitting_grid(rule, image)
                    : rule.fit == ImageFit::kWidestGrid  ? widest_grid(rule, image)
                                                         : listed_grid(rule, image);
  const bool apart =
      grid.tiles() > 1 || rule.fit == ImageFit::kWidestGrid || rule.fit == ImageFit::kListedGrids;
  result.tiles = grid.tiles() + (apart ? 1 : 0);
  result.tokens = result.tiles * of_tile;
  // A token between the tiles of a row, one behind each row, and one in front of the whole image.
  if (rule.fit == ImageFit::kFittingGrid)
    result.tokens += (apart ? grid.rows * (grid.columns - 1) + grid.rows : 0) + 1;
  // One behind each row of tokens, and one between tiles and the whole image.
  if (rule.fit == ImageFit::kWidestGrid) result.tokens += (grid.rows + 1) * side + 1;
  if (rule.fit == ImageFit::kListedGrids)
    result.tokens = of_tile + unpadded_tokens(grid, side, image);
  return result;
}

}  // namespace

ImagePatches patches_of(const ImageRule& rule, std::int64_t patch, std::int64_t merge,
                        ImageSize image) {
  using Fitting = ImagePatches (*)(const ImageRule&, std::int64_t, std::int64_t, ImageSize);
  static const std::map<ImageFit, Fitting> kWhole = {{ImageFit::kSquare, square},
                                                     {ImageFit::kPixels, within_pixels},
                                                     {ImageFit::kPatchLimit, within_patches},
                                                     {ImageFit::kTokenBudget, within_budget},
                                                     {ImageFit::kLongestSide, within_longest}};
  const auto whole = kWhole.find(rule.fit);
  if (whole == kWhole.end()) return tiles_of(rule, patch, merge, image);
  ImagePatches result = whole->second(rule, patch, merge, image);
  if (rule.row_tokens) result.tokens += result.rows / merge;
  return result;
}

}  // namespace orrery
