// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/kernel_fit.h"

#include "sim/config/schema.h"
#include "sim/machine/precision_names.h"

namespace orrery {

using config::at_least;
using config::between;
using config::Schema;

const char* to_string(ParameterProvenance provenance) {
  return config::EnumNames<ParameterProvenance>::values[static_cast<std::size_t>(provenance)]
      .second;
}

const Schema<CalibratedParameter>& CalibratedParameter::schema() {
  using C = CalibratedParameter;
  static const auto schema =
      Schema<C>("parameter", "a parameter of a kernel model")
          .required("value", &C::value, "number in the unit beside it", between(0, 1e6))
          .required("unit", &C::unit, "1 or us")
          .optional("standard_error", &C::standard_error,
                    "standard error in that unit, by shape group", at_least(0))
          .required("provenance", &C::provenance, "what the value rests on");
  return schema;
}

const Schema<ErrorSummary>& ErrorSummary::schema() {
  using C = ErrorSummary;
  static const auto schema =
      Schema<C>("errors", "predicted against measured")
          .required("count", &C::count, "number of rows", at_least(0))
          .required("mape", &C::mape, "mean absolute error", at_least(0))
          .required("median", &C::median, "median absolute error", at_least(0))
          .required("p90", &C::p90, "ninth decile of the absolute error", at_least(0))
          .required("bias", &C::bias, "mean signed error")
          .required("worst", &C::worst, "signed error of the worst row");
  return schema;
}

const Schema<ResidualClass>& ResidualClass::schema() {
  using C = ResidualClass;
  static const auto schema =
      Schema<C>("residuals", "log(measured / predicted) of rows that were not fitted")
          .optional("below_us", &C::below_us, "predictions below this; 0: all others", at_least(0))
          .required("count", &C::count, "number of rows", at_least(0))
          .required("median", &C::median, "median of the logarithm")
          .required("sigma", &C::sigma, "spread of the logarithm", at_least(0));
  return schema;
}

const Schema<ShapeRange>& ShapeRange::schema() {
  using C = ShapeRange;
  static const auto schema =
      Schema<C>("shapes", "least and greatest dimension that was fitted")
          .required("batch", &C::batch, "independent products or sequences times heads",
                    at_least(0))
          .required("m", &C::m, "rows, or query length", at_least(0))
          .required("n", &C::n, "columns, or key length", at_least(0))
          .required("k", &C::k, "summed dimension, or width of a head", at_least(0))
          .check(
              "each dimension needs two numbers, the smaller one first",
              [](const C& c) {
                for (const auto* range : {&c.batch, &c.m, &c.n, &c.k})
                  if (range->size() != 2 || (*range)[0] > (*range)[1]) return false;
                return true;
              },
              "batch");
  return schema;
}

namespace {

bool covariance_is_square(const KernelFit& fit) {
  if (fit.covariance.size() != fit.fitted.size()) return false;
  for (const auto& row : fit.covariance)
    if (row.size() != fit.fitted.size()) return false;
  return true;
}

bool fitted_parameters_exist(const KernelFit& fit) {
  for (const std::string& name : fit.fitted)
    if (!fit.parameters.contains(name)) return false;
  return true;
}

}  // namespace

const Schema<KernelFit>& KernelFit::schema() {
  using C = KernelFit;
  static const auto schema =
      Schema<C>("fit", "what one set of measurements tells about kernels")
          .required("table", &C::table, "what was measured: gemm, attention_prefill, ...")
          .required("precision", &C::precision, "number format of the matrix operands")
          .required("measurements", &C::measurements, "files, by name")
          .required("parameters", &C::parameters, "fitted or prior values by kernel class and name")
          .optional("fitted", &C::fitted, "the order of the covariance")
          .optional("covariance", &C::covariance,
                    "covariance of the logarithms of the fitted parameters")
          .required("shapes", &C::shapes, "what was fitted, by kernel class")
          .required("fit_error", &C::fit_error, "errors on the shape groups that were fitted")
          .required("held_out_error", &C::held_out_error, "errors on the other shape groups")
          .optional("structure_error", &C::structure_error,
                    "errors of the parameters alone on the other shape groups")
          .optional("whole_model_error", &C::whole_model_error,
                    "errors on each model of the table, by a fit of the others")
          .optional(
              "sibling", &C::sibling,
              "the device that gave, by data sheet, the parameters that no row tells; absent: none")
          .required("residuals", &C::residuals,
                    "spread on the other shape groups, by predicted time")
          .optional("measured_ratios", &C::measured_ratios,
                    "measured over predicted at fitted shapes; lines of numbers, see the README of "
                    "configs/calibrations")
          .check("must name parameters of this fit", fitted_parameters_exist, "fitted")
          .check("must have a row and a column for each name of 'fitted'", covariance_is_square,
                 "covariance")
          .check(
              "at least one class of residuals is needed",
              [](const C& c) { return !c.residuals.empty(); }, "residuals");
  return schema;
}

}  // namespace orrery
