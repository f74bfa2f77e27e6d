// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// How an image processor brings an image to patches.
enum class ImageFit : std::uint8_t {
  kSquare,       ///< resized to a square, whatever its shape (CLIP, SigLIP)
  kPixels,       ///< sides rounded to tokens, their area within bounds (Qwen2-VL, GLM-4V)
  kPatchLimit,   ///< made smaller to a number of patches, never larger, then padded (MoonViT)
  kTokenBudget,  ///< fills a budget of tokens, in its own shape (Gemma 4)
  kLongestSide,  ///< made smaller to a longest side, rounded up to tokens (Pixtral)
  kNearestGrid,  ///< tiles in the grid nearest to its shape, and one of all of it (InternVL)
  kFittingGrid,  ///< tiles in the smallest grid that holds it, and one of all of it (Llama 4)
  kWidestGrid,   ///< most tiles side by side that a limit allows, and one of all of it (Phi-3-V)
  kListedGrids,  ///< tiles in one of a list of sizes, and one of all of it (LLaVA-NeXT)
};

/// Pixels of an image.
struct ImageSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// The rule by which an image becomes patches, with the limits of its processor.
struct ImageRule {
  ImageFit fit = ImageFit::kSquare;
  std::int64_t side = 0;   ///< pixels of a side of the square, or of a tile
  std::int64_t least = 0;  ///< kPixels: pixels at least; kNearestGrid: tiles at least
  /// kPixels: pixels; kPatchLimit: patches; kTokenBudget: tokens; grids: tiles; each at most.
  std::int64_t most = 0;
  std::int64_t longest = 0;         ///< kLongestSide: pixels; kPatchLimit: patches on a side
  bool row_tokens = false;          ///< each row of tokens ends with one more of its own
  std::vector<ImageSize> listed{};  ///< sizes of kListedGrids

  /// Whether images of all sizes become as many patches.
  bool same_for_all() const { return fit == ImageFit::kSquare; }
};

/// What an image becomes. Tokens that begin and end an image are text.
struct ImagePatches {
  std::int64_t tiles = 1;              ///< patches attend to those of their own tile
  std::int64_t rows = 0, columns = 0;  ///< patches of a tile
  std::int64_t padding = 0;            ///< patches of a tile that are computed for nothing
  std::int64_t tokens = 0;             ///< tokens of the prompt, those between rows and tiles too

  std::int64_t patches() const { return tiles * rows * columns; }
  bool operator==(const ImagePatches&) const = default;
};

/// @param patch pixels of a side of a patch
/// @param merge patches of a side of a token
ImagePatches patches_of(const ImageRule& rule, std::int64_t patch, std::int64_t merge,
                        ImageSize image);

}  // namespace orrery
