// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/calibration.h"

#include <utility>

#include "sim/machine/precision_names.h"

namespace orrery {

using config::at_least;
using config::Schema;

const Schema<MeasurementFile>& MeasurementFile::schema() {
  using C = MeasurementFile;
  static const auto schema =
      Schema<C>("measurement", "a file of measurements")
          .required("file", &C::file, "name of the file")
          .required("sha256", &C::sha256, "SHA-256 of the file's bytes")
          .required("date", &C::date, "date of the measurement, or of the fit")
          .optional("source", &C::source, "who measured, and with what")
          .required("rows", &C::rows, "rows of this device", at_least(0));
  return schema;
}

const Schema<LeftOutRows>& LeftOutRows::schema() {
  using C = LeftOutRows;
  static const auto schema =
      Schema<C>("left_out", "rows that a written rule left out")
          .required("table", &C::table, "gemm, attention_prefill, ...")
          .required("precision", &C::precision, "number format of the matrix operands")
          .required("rule", &C::rule, "rule that left them out")
          .required("rows", &C::rows, "number of rows", at_least(1));
  return schema;
}

const Schema<CalibratedRates>& CalibratedRates::schema() {
  using C = CalibratedRates;
  static const auto schema =
      Schema<C>("rates", "what efficiencies are shares of, per package")
          .required("matrix", &C::matrix, "dense peak by precision", config::positive())
          .required("memory", &C::memory, "memory bandwidth", config::positive())
          .optional("units", &C::units, "units of the package; 0: not recorded", at_least(0))
          .optional("clock", &C::clock, "clock of the units; 0: not recorded", at_least(Hertz(0)))
          .optional("cache", &C::cache, "capacity of the last cache; 0: not recorded, or none",
                    at_least(Bytes(0)))
          .optional("power", &C::power, "power cap; 0: not recorded", at_least(Watts(0)));
  return schema;
}

const Schema<Calibration>& Calibration::schema() {
  using C = Calibration;
  static const auto schema =
      Schema<C>("calibration", "parameters of the kernel model of one device, from measurements")
          .named("calibration", &C::id)
          .required("accelerator", &C::accelerator, "the configuration it was fitted with")
          .required("model", &C::model, "kernel model that the parameters belong to")
          .required("made_with", &C::made_with, "program version and date")
          .required("rates", &C::rates, "what efficiencies are shares of")
          .required("measurements", &C::measurements, "files that it rests on")
          .optional("left_out", &C::left_out, "rows that a written rule left out")
          .required("fits", &C::written_fits, "parameters by what was measured");
  return schema;
}

AcceleratorConfig at_fitted_rates(AcceleratorConfig device, const CalibratedRates& rates) {
  device.memory.bandwidth.value = rates.memory;
  for (const auto& [precision, rate] : rates.matrix) device.compute.matrix[precision].value = rate;
  return device;
}

}  // namespace orrery
