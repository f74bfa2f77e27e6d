// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/unit/workloads/formats/onnx/writer.h"

namespace orrery::onnx {

/// ResNet-50 (He et al. 2016) as torchvision exports it: convolutions without bias, batch norms.
class ResNet50 {
 public:
  std::string build() {
    std::string x = g_.input("image", {"batch", 3, 224, 224});
    x = relu(conv(x, 3, 64, 7, 2));
    x = g_.add("MaxPool", {x},
               {integers("kernel_shape", {3, 3}), integers("strides", {2, 2}),
                integers("pads", {1, 1, 1, 1})});
    int in = 64;
    const int blocks[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage) {
      const int middle = 64 << stage;
      for (int block = 0; block < blocks[stage]; ++block) {
        x = bottleneck(x, in, middle, stage > 0 && block == 0 ? 2 : 1);
        in = 4 * middle;
      }
    }
    x = g_.add("Flatten", {g_.add("GlobalAveragePool", {x})}, {integer("axis", 1)});
    x = g_.add("Gemm", {x, g_.weight("fc", {1000, 2048}), g_.weight("fc bias", {1000})},
               {integer("transB", 1)});
    g_.output(x, {"batch", 1000});
    return model(g_, 13);
  }

 private:
  std::string bottleneck(const std::string& x, int in, int middle, int stride) {
    std::string y = relu(conv(x, in, middle, 1, 1));
    y = relu(conv(y, middle, middle, 3, stride));
    y = conv(y, middle, 4 * middle, 1, 1);
    const bool same = in == 4 * middle && stride == 1;
    return relu(g_.add("Add", {y, same ? x : conv(x, in, 4 * middle, 1, stride)}));
  }
  std::string conv(const std::string& x, int in, int out, int size, int stride) {
    const std::string name = "conv" + std::to_string(convolutions_++);
    const std::int64_t pad = size / 2;
    const std::string y =
        g_.add("Conv", {x, g_.weight(name, {out, in, size, size})},
               {integers("kernel_shape", {size, size}), integers("strides", {stride, stride}),
                integers("pads", {pad, pad, pad, pad})});
    return g_.add("BatchNormalization",
                  {y, g_.weight(name + " scale", {out}), g_.weight(name + " shift", {out}),
                   g_.weight(name + " mean", {out}), g_.weight(name + " variance", {out})});
  }
  std::string relu(const std::string& x) { return g_.add("Relu", {x}); }

  GraphWriter g_;
  int convolutions_ = 0;
};

/// BERT-base (Devlin et al. 2019) as PyTorch exports it: products and norms apart, GELU by Erf.
class Bert {
 public:
  std::string build() {
    const std::string ids = g_.input("input_ids", {"batch", "length"}, kInt64);
    const std::string types = g_.input("token_type_ids", {"batch", "length"}, kInt64);
    const std::string mask = g_.input("mask", {"batch", 1, 1, "length"});
    const std::string places = g_.add(
        "Slice", {g_.weight("place ids", {1, 512}, kInt64), g_.constant({0}),
                  g_.add("Gather", {g_.add("Shape", {ids}), g_.constant({1})}), g_.constant({1})});
    std::string x = g_.add("Gather", {g_.weight("words", {30522, kWidth}), ids});
    x = g_.add("Add", {x, g_.add("Gather", {g_.weight("types", {2, kWidth}), types})});
    x = g_.add("Add", {x, g_.add("Gather", {g_.weight("places", {512, kWidth}), places})});
    x = norm(x);
    for (int layer = 0; layer < 12; ++layer) x = this->layer(x, mask);
    std::string first = g_.add("Gather", {x, g_.scalar(0)}, {integer("axis", 1)});
    first = g_.add("Gemm", {first, g_.weight("pooler", {kWidth, kWidth}), bias(kWidth)},
                   {integer("transB", 1)});
    g_.output(g_.add("Tanh", {first}));
    g_.output(x);
    return model(g_, 17);
  }

 private:
  static constexpr int kWidth = 768, kHeads = 12, kInner = 3072;

  std::string weight(const Integers& dims) {
    return g_.weight("w" + std::to_string(weights_++), dims);
  }
  std::string bias(int width) { return weight({width}); }
  std::string dense(const std::string& x, int in, int out) {
    return g_.add("Add", {g_.add("MatMul", {x, weight({in, out})}), bias(out)});
  }
  std::string norm(const std::string& x) {
    return g_.add("LayerNormalization", {x, bias(kWidth), bias(kWidth)}, {integer("axis", -1)});
  }
  std::string heads(const std::string& x, const Integers& order) {
    const std::string split = g_.add("Reshape", {x, g_.constant({0, 0, kHeads, kWidth / kHeads})});
    return g_.add("Transpose", {split}, {integers("perm", order)});
  }
  std::string layer(const std::string& x, const std::string& mask) {
    const std::string q = heads(dense(x, kWidth, kWidth), {0, 2, 1, 3});
    const std::string k = heads(dense(x, kWidth, kWidth), {0, 2, 3, 1});
    const std::string v = heads(dense(x, kWidth, kWidth), {0, 2, 1, 3});
    std::string scores = g_.add("Div", {g_.add("MatMul", {q, k}), weight({})});
    scores = g_.add("Softmax", {g_.add("Add", {scores, mask})}, {integer("axis", -1)});
    std::string y =
        g_.add("Transpose", {g_.add("MatMul", {scores, v})}, {integers("perm", {0, 2, 1, 3})});
    y = dense(g_.add("Reshape", {y, g_.constant({0, 0, kWidth})}), kWidth, kWidth);
    const std::string middle = norm(g_.add("Add", {y, x}));
    const std::string wide = dense(middle, kWidth, kInner);
    const std::string half = g_.add("Erf", {g_.add("Div", {wide, weight({})})});
    const std::string gelu =
        g_.add("Mul", {g_.add("Mul", {wide, g_.add("Add", {half, weight({})})}), weight({})});
    return norm(g_.add("Add", {dense(gelu, kInner, kWidth), middle}));
  }

  GraphWriter g_;
  int weights_ = 0;
};

/// Layers of Llama 2 7B (arXiv 2307.09288) with a cache, as transformers exports them: RMS norms
/// and rotary embeddings by elementary operators, 16 bits.
class Llama {
 public:
  explicit Llama(int layers) : layers_(layers) {}

  std::string build() {
    const std::string ids = g_.input("input_ids", {"batch", "length"}, kInt64);
    cos_ = g_.input("cos", {"batch", 1, "length", kHead}, kHalf);
    sin_ = g_.input("sin", {"batch", 1, "length", kHead}, kHalf);
    mask_ = g_.input("mask", {"batch", 1, "length", "total"}, kHalf);
    std::string x = g_.add("Gather", {weight({32000, kWidth}), ids});
    for (int i = 0; i < layers_; ++i) x = layer(x, i);
    g_.output(g_.add("MatMul", {norm(x), weight({kWidth, 32000})}));
    return model(g_, 17);
  }

 private:
  static constexpr int kWidth = 4096, kHeads = 32, kHead = 128, kInner = 11008;

  std::string weight(const Integers& dims) {
    return g_.weight("w" + std::to_string(weights_++), dims, kHalf);
  }
  std::string norm(const std::string& x) {
    const std::string wide = g_.add("Cast", {x}, {integer("to", kFloat)});
    std::string mean =
        g_.add("ReduceMean", {g_.add("Pow", {wide, g_.scalar(2)})}, {integers("axes", {-1})});
    mean = g_.add("Sqrt", {g_.add("Add", {mean, g_.scalar(0)})});
    const std::string normed = g_.add("Mul", {wide, g_.add("Reciprocal", {mean})});
    return g_.add("Mul", {weight({kWidth}), g_.add("Cast", {normed}, {integer("to", kHalf)})});
  }
  std::string heads(const std::string& x) {
    return g_.add("Transpose", {g_.add("Reshape", {x, g_.constant({0, 0, kHeads, kHead})})},
                  {integers("perm", {0, 2, 1, 3})});
  }
  std::string rotated(const std::string& x) {
    const std::string axis = g_.constant({3}), half = g_.constant({kHead / 2});
    const std::string low = g_.add("Slice", {x, g_.constant({0}), half, axis});
    const std::string high = g_.add("Slice", {x, half, g_.constant({INT64_MAX}), axis});
    const std::string turned =
        g_.add("Concat", {g_.add("Neg", {high}), low}, {integer("axis", -1)});
    return g_.add("Add", {g_.add("Mul", {x, cos_}), g_.add("Mul", {turned, sin_})});
  }
  std::string cached(const std::string& name, const std::string& x) {
    const std::string past = g_.input(name, {"batch", kHeads, "past", kHead}, kHalf);
    const std::string all = g_.add("Concat", {past, x}, {integer("axis", 2)});
    g_.output(all, {"batch", kHeads, "total", kHead}, kHalf);
    return all;
  }
  std::string layer(const std::string& x, int i) {
    const std::string in = norm(x), number = std::to_string(i);
    const std::string q = rotated(heads(g_.add("MatMul", {in, weight({kWidth, kWidth})})));
    const std::string new_keys = rotated(heads(g_.add("MatMul", {in, weight({kWidth, kWidth})})));
    const std::string k = cached("past_key" + number, new_keys);
    const std::string v =
        cached("past_value" + number, heads(g_.add("MatMul", {in, weight({kWidth, kWidth})})));
    const std::string kt = g_.add("Transpose", {k}, {integers("perm", {0, 1, 3, 2})});
    const std::string scores = g_.add("Mul", {g_.add("MatMul", {q, kt}), g_.scalar(1)});
    const std::string p =
        g_.add("Softmax", {g_.add("Add", {scores, mask_})}, {integer("axis", -1)});
    std::string y =
        g_.add("Transpose", {g_.add("MatMul", {p, v})}, {integers("perm", {0, 2, 1, 3})});
    y = g_.add("MatMul",
               {g_.add("Reshape", {y, g_.constant({0, 0, kWidth})}), weight({kWidth, kWidth})});
    const std::string middle = g_.add("Add", {x, y}), normed = norm(middle);
    const std::string gate = g_.add("MatMul", {normed, weight({kWidth, kInner})});
    const std::string up = g_.add("MatMul", {normed, weight({kWidth, kInner})});
    const std::string silu = g_.add("Mul", {gate, g_.add("Sigmoid", {gate})});
    return g_.add(
        "Add", {middle, g_.add("MatMul", {g_.add("Mul", {silu, up}), weight({kInner, kWidth})})});
  }

  GraphWriter g_;
  int layers_, weights_ = 0;
  std::string cos_, sin_, mask_;
};

}  // namespace orrery::onnx
