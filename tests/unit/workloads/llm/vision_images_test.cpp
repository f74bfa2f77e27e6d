// SPDX-License-Identifier: Apache-2.0
// What images become by the rules of published image processors, worked out by hand.
#include <gtest/gtest.h>

#include "workloads/models/image_rules.h"

namespace orrery::vision_images_test {
namespace {

const ImageRule kQwen25{.fit = ImageFit::kPixels, .least = 3136, .most = 12845056};
const ImageRule kQwen3{.fit = ImageFit::kPixels, .least = 65536, .most = 16777216};

// 1,024 pixels are 36.57 times 28, so 37: 74 patches a side, four of which are a token.
TEST(ImageRules, SidesAreRoundedToWholeTokens) {
  const ImagePatches image = patches_of(kQwen25, 14, 2, {1024, 1024});
  EXPECT_EQ(image.rows, 74);
  EXPECT_EQ(image.columns, 74);
  EXPECT_EQ(image.tokens, 1369);
  // 1,024 is 32 times 32.
  EXPECT_EQ(patches_of(kQwen3, 16, 2, {1024, 1024}).tokens, 32 * 32);
  // 42 is one and a half times 28: halves go to the even number, as Python rounds.
  EXPECT_EQ(patches_of(kQwen25, 14, 2, {42, 280}).tokens, 2 * 10);
  EXPECT_EQ(patches_of(kQwen25, 14, 2, {70, 280}).tokens, 2 * 10);
}

// 8,192 x 4,096 is 2^25 pixels, twice the most: both sides over sqrt(2), 5,792.6 and 2,896.3,
// rounded down to multiples of 32.
TEST(ImageRules, AreasBeyondTheMostShrinkAndBelowTheLeastGrow) {
  EXPECT_EQ(patches_of(kQwen3, 16, 2, {4096, 8192}).tokens, (2896 / 32) * (5792 / 32));
  // 64 x 64 is a sixteenth of 65,536: four times each side.
  EXPECT_EQ(patches_of(kQwen3, 16, 2, {64, 64}).tokens, 8 * 8);
}

// LLaVA 1.5 and Gemma 3: 24 x 24 and 64 x 64 patches, of which 4 x 4 are pooled.
TEST(ImageRules, SquaresAreTheSameForAllImages) {
  const ImageRule llava{.fit = ImageFit::kSquare, .side = 336};
  EXPECT_EQ(patches_of(llava, 14, 1, {10, 9000}).tokens, 576);
  const ImageRule gemma{.fit = ImageFit::kSquare, .side = 896};
  EXPECT_EQ(patches_of(gemma, 14, 4, {1024, 1024}).tokens, 256);
}

// MoonViT never enlarges: 100 x 50 pixels are padded to 112 x 56. Beyond 16,384 patches an image
// shrinks: 4,480 x 4,480 has 320 x 320, so by 0.4 to 1,792 x 1,792, 64 tokens a side.
TEST(ImageRules, PatchLimitsShrinkAndPad) {
  const ImageRule kimi{.fit = ImageFit::kPatchLimit, .most = 16384, .longest = 512};
  EXPECT_EQ(patches_of(kimi, 14, 2, {50, 100}).tokens, 2 * 4);
  EXPECT_EQ(patches_of(kimi, 14, 2, {1024, 1024}).tokens, 37 * 37);
  EXPECT_EQ(patches_of(kimi, 14, 2, {4480, 4480}).tokens, 64 * 64);
}

// Gemma 4: 280 tokens of 48 x 48 pixels are 645,120; a square has sides of 803.2, so 16 tokens, and
// the tower works on all 2,520 patches.
TEST(ImageRules, BudgetsKeepTheShapeAndPadTheRest) {
  const ImageRule gemma{.fit = ImageFit::kTokenBudget, .most = 280};
  const ImagePatches image = patches_of(gemma, 16, 3, {1024, 1024});
  EXPECT_EQ(image.tokens, 16 * 16);
  EXPECT_EQ(image.patches() + image.padding, 2520);
  // One by two: 568.0 and 1,135.9 pixels, 11 and 23 tokens.
  EXPECT_EQ(patches_of(gemma, 16, 3, {500, 1000}).tokens, 11 * 23);
}

// Pixtral: 1,024 x 1,024 are 64 rows of 64 patches, each with a token behind; 2,048 x 1,024 are
// halved. Mistral Small merges 2 x 2: 1,024 / 28 is 36.6, so 37.
TEST(ImageRules, RowsEndWithATokenOfTheirOwn) {
  const ImageRule pixtral{.fit = ImageFit::kLongestSide, .longest = 1024, .row_tokens = true};
  EXPECT_EQ(patches_of(pixtral, 16, 1, {1024, 1024}).tokens, 64 * 65);
  EXPECT_EQ(patches_of(pixtral, 16, 1, {2048, 1024}).tokens, 64 * 33);
  const ImageRule small{.fit = ImageFit::kLongestSide, .longest = 1540, .row_tokens = true};
  EXPECT_EQ(patches_of(small, 14, 2, {1024, 1024}).tokens, 37 * 38);
}

// InternVL: a square fits 1 x 1, 2 x 2 and 3 x 3 alike, and takes the largest that it fills by
// half: 1,024^2 is more than half of 896^2 and of 1,344^2. 800 x 400 is 2 x 1, and one more of all
// of it.
TEST(ImageRules, NearestGridsHaveATileMoreForTheWholeImage) {
  const ImageRule intern{.fit = ImageFit::kNearestGrid, .side = 448, .least = 1, .most = 12};
  EXPECT_EQ(patches_of(intern, 14, 2, {1024, 1024}).tiles, 10);
  EXPECT_EQ(patches_of(intern, 14, 2, {448, 448}).tokens, 256);
  EXPECT_EQ(patches_of(intern, 14, 2, {400, 800}).tokens, 3 * 256);
}

// Llama 4: 672 x 672 holds 600 x 600 with the least enlargement: 4 tiles and one of all, a token
// between columns, one behind rows, one in front of the last. 336 x 336 is one tile.
TEST(ImageRules, FittingGridsHoldTheImage) {
  const ImageRule llama{.fit = ImageFit::kFittingGrid, .side = 336, .most = 16};
  const ImagePatches image = patches_of(llama, 14, 2, {600, 600});
  EXPECT_EQ(image.tiles, 5);
  EXPECT_EQ(image.tokens, 5 * 144 + 2 + 2 + 1);
  EXPECT_EQ(patches_of(llama, 14, 2, {336, 336}).tokens, 144 + 1);
  // None of 16 tiles holds 4,000 x 4,000: 4 x 4 makes it smaller by the least.
  EXPECT_EQ(patches_of(llama, 14, 2, {4000, 4000}).tiles, 17);
}

// Phi-3.5-vision: (h w + 1) 144 + 1 + (h + 1) 12 for h x w tiles; a square has 4 x 4 of 16.
TEST(ImageRules, WidestGridsHaveAsManyTilesAsALimitAllows) {
  const ImageRule phi{.fit = ImageFit::kWidestGrid, .side = 336, .most = 16};
  EXPECT_EQ(patches_of(phi, 14, 2, {1000, 1000}).tokens, 17 * 144 + 1 + 5 * 12);
  // Twice as wide as high: 5 x 3 tiles (5 / 2 is 2.5); 6 x 3 would be 18.
  EXPECT_EQ(patches_of(phi, 14, 2, {500, 1000}).tokens, 16 * 144 + 1 + 4 * 12);
}

// LLaVA-NeXT: 672 x 672 keeps most of a square: 24 x 24 of the whole, and 48 rows of 48 with a
// token behind each: 2,928 in all, the most that the model has.
TEST(ImageRules, ListedGridsLeavePaddingOut) {
  ImageRule next{.fit = ImageFit::kListedGrids, .side = 336};
  next.listed = {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  EXPECT_EQ(patches_of(next, 14, 1, {1000, 1000}).tokens, 576 + 48 * 49);
  EXPECT_EQ(patches_of(next, 14, 1, {1000, 1000}).tiles, 5);
  // 640 x 480 in the same canvas: 36 of 48 rows are image.
  EXPECT_EQ(patches_of(next, 14, 1, {480, 640}).tokens, 576 + 36 * 49);
}

}  // namespace
}  // namespace orrery::vision_images_test
