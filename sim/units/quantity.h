// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

namespace orrery {

/// Exponents of the base dimensions: time [s], data [B], work [FLOP], energy [J], money [USD],
/// carbon [gCO2], a mass of CO2.
struct Dimension {
  int time = 0, data = 0, work = 0, energy = 0, money = 0, carbon = 0;
  constexpr bool operator==(const Dimension&) const = default;
};

constexpr Dimension operator+(Dimension a, Dimension b) {
  return {a.time + b.time,     a.data + b.data,   a.work + b.work,
          a.energy + b.energy, a.money + b.money, a.carbon + b.carbon};
}
constexpr Dimension operator-(Dimension a, Dimension b) {
  return {a.time - b.time,     a.data - b.data,   a.work - b.work,
          a.energy - b.energy, a.money - b.money, a.carbon - b.carbon};
}

/// A double that knows its dimension. The value is held in SI base units (s, B, FLOP, J, USD,
/// gCO2). Products and quotients change the dimension; a dimensionless result is a plain double.
template <Dimension D>
class Quantity {
 public:
  static constexpr Dimension dimension = D;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double base) : base_(base) {}

  /// The value in SI base units.
  constexpr double base() const { return base_; }

  // clang-tidy 14 takes the defaulted comparison for a null pointer.
  constexpr auto operator<=>(const Quantity&) const = default;  // NOLINT(modernize-use-nullptr)
  constexpr Quantity operator-() const { return Quantity(-base_); }
  constexpr Quantity& operator+=(Quantity o) { return base_ += o.base_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return base_ -= o.base_, *this; }
  constexpr Quantity& operator*=(double f) { return base_ *= f, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.base_ * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.base_ * f); }
  friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.base_ / f); }

 private:
  double base_ = 0;
};

namespace detail {
template <Dimension D>
constexpr auto make_quantity(double base) {
  if constexpr (D == Dimension{}) {
    return base;
  } else {
    return Quantity<D>(base);
  }
}
}  // namespace detail

template <Dimension A, Dimension B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  return detail::make_quantity<A + B>(a.base() * b.base());
}
template <Dimension A, Dimension B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  return detail::make_quantity<A - B>(a.base() / b.base());
}
template <Dimension A>
constexpr auto operator/(double a, Quantity<A> b) {
  return detail::make_quantity<Dimension{} - A>(a / b.base());
}

}  // namespace orrery
