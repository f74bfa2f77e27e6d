// SPDX-License-Identifier: Apache-2.0
#include "sim/units/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sim/units/units.h"

namespace orrery::text_test {
namespace {

constexpr Dimension kAll[] = {
    Seconds::dimension,       Hertz::dimension,          Bytes::dimension,
    Flops::dimension,         Joules::dimension,         Dollars::dimension,
    Watts::dimension,         BytesPerSecond::dimension, FlopsPerSecond::dimension,
    JoulesPerByte::dimension, JoulesPerFlop::dimension,  DollarsPerSecond::dimension,
    CarbonMass::dimension,    CarbonIntensity::dimension};

std::string error_of(const std::string& text, Dimension dimension) {
  try {
    parse_quantity(text, dimension);
  } catch (const UnitError& error) {
    const std::string& suggestion = error.suggestion();
    return error.what() + (suggestion.empty() ? std::string() : "; did you mean " + suggestion);
  }
  return "no error";
}

std::string number_error_of(const std::string& text) {
  try {
    parse_number(text);
  } catch (const UnitError& error) {
    return error.what();
  }
  return "no error";
}

TEST(UnitText, PrefixesAreDecimalAndBinaryOnesAreNamed) {
  EXPECT_EQ(parse<Bytes>("80 GB"), Bytes(80e9));
  EXPECT_EQ(parse<Bytes>("1 kB"), parse<Bytes>("1 KB"));
  EXPECT_EQ(parse<Bytes>("64 GiB"), Bytes(64.0 * 1024 * 1024 * 1024));
  EXPECT_EQ(parse<Bytes>("1 PiB"), Bytes(std::pow(2.0, 50)));
}

TEST(UnitText, BitsAreAnEighthOfBytes) {
  EXPECT_EQ(parse<BytesPerSecond>("3.2 Tb/s"), BytesPerSecond(400e9));
  EXPECT_EQ(parse<BytesPerSecond>("400 Gb/s"), parse<BytesPerSecond>("50 GB/s"));
  EXPECT_EQ(parse<Bytes>("8 bit"), Bytes(1));
  // 5 pJ for one bit are 40 pJ for eight.
  EXPECT_EQ(parse<JoulesPerByte>("5 pJ/bit"), parse<JoulesPerByte>("40 pJ/B"));
}

TEST(UnitText, EveryDimensionHasItsUnits) {
  EXPECT_EQ(parse<Seconds>("2 min"), Seconds(120));
  EXPECT_EQ(parse<Seconds>("1.5 h"), Seconds(5400));
  EXPECT_EQ(parse<Hertz>("1.83 GHz"), Hertz(1.83e9));
  EXPECT_EQ(parse<Hertz>("10 /s"), Hertz(10));  // so many of something
  EXPECT_EQ(parse<Hertz>("30 /min"), Hertz(0.5));
  EXPECT_EQ(parse<FlopsPerSecond>("1979 TOPS"), FlopsPerSecond(1979e12));
  EXPECT_EQ(parse<FlopsPerSecond>("3.6 EFLOP/s"), FlopsPerSecond(3.6e18));
  EXPECT_EQ(parse<Flops>("2 TFLOP"), Flops(2e12));
  EXPECT_EQ(parse<Watts>("132 kW"), Watts(132e3));
  EXPECT_EQ(parse<Joules>("1 kWh"), Joules(3.6e6));
  EXPECT_EQ(parse<JoulesPerFlop>("0.5 pJ/FLOP"), JoulesPerFlop(0.5e-12));
  EXPECT_EQ(parse<Dollars>("25000 USD"), Dollars(25000));
  EXPECT_EQ(parse<DollarsPerSecond>("3600 USD/h"), DollarsPerSecond(1));
}

TEST(UnitText, DecimalPrefixesDoNotRound) {
  // 3.35 * 1e12 and 600 * 1e-9 in doubles may differ from the nearest double by a rounding.
  EXPECT_EQ(parse<BytesPerSecond>("3.35 TB/s").base(), 3.35e12);
  EXPECT_EQ(parse<BytesPerSecond>("3350 GB/s").base(), 3.35e12);
  EXPECT_EQ(parse<Seconds>("600 ns").base(), 6e-7);
  EXPECT_EQ(parse<Seconds>("0.6 us").base(), 6e-7);
}

TEST(UnitText, SpaceBeforeTheUnitIsFree) {
  EXPECT_EQ(parse<BytesPerSecond>("8TB/s"), parse<BytesPerSecond>("8   TB/s"));
  EXPECT_EQ(parse<Bytes>("1e3B"), Bytes(1000));
  EXPECT_EQ(parse<Flops>("5EFLOP"), Flops(5e18));
}

TEST(UnitText, OnlyZeroNeedsNoUnit) {
  EXPECT_EQ(parse<Seconds>("0"), Seconds(0));
  EXPECT_FALSE(std::signbit(parse<Seconds>("-0").base()));
  EXPECT_EQ(error_of("900", BytesPerSecond::dimension),
            "expected bandwidth (e.g. 900 GB/s, 3.2 Tb/s), got '900'");
}

TEST(UnitText, NumbersForPeopleAreGroupedByThousandsAndRounded) {
  EXPECT_EQ(print_grouped(1075200), "1,075,200");
  EXPECT_EQ(print_grouped(13.75, 1), "13.8");
  EXPECT_EQ(print_grouped(999), "999");
  EXPECT_EQ(print_grouped(-123456.5, 2), "-123,456.50");
  EXPECT_EQ(print_grouped(-999), "-999");
}

TEST(UnitText, TheWrongDimensionIsNamed) {
  EXPECT_EQ(error_of("900 GB", BytesPerSecond::dimension),
            "expected bandwidth (e.g. 900 GB/s, 3.2 Tb/s), got '900 GB', a data size");
  EXPECT_EQ(error_of("5 J", Watts::dimension),
            "expected power (e.g. 700 W, 132 kW), got '5 J', an energy");
}

TEST(UnitText, ATypoInTheUnitIsCorrected) {
  const auto suggestion = [](const std::string& text, Dimension dimension) {
    const std::string message = error_of(text, dimension);
    return message.substr(message.rfind(' ') + 1);
  };
  EXPECT_EQ(suggestion("900 GBs", BytesPerSecond::dimension), "GB/s");
  EXPECT_EQ(suggestion("900 GBps", BytesPerSecond::dimension), "GB/s");
  EXPECT_EQ(suggestion("400 Gbps", BytesPerSecond::dimension), "Gb/s");
  EXPECT_EQ(suggestion("900 TB / s", BytesPerSecond::dimension), "TB/s");
  EXPECT_EQ(suggestion("80 Gib", Bytes::dimension), "GiB");
  EXPECT_EQ(suggestion("3 usec", Seconds::dimension), "us");
  EXPECT_EQ(suggestion("3 TFLPO/s", FlopsPerSecond::dimension), "TFLOP/s");
}

TEST(UnitText, NumbersThatYamlDialectsReadDifferentlyAreRefused) {
  EXPECT_EQ(number_error_of("010"),
            "'010' starts with 0, which is octal to some readers; write '10'");
  EXPECT_EQ(number_error_of("0x10"), "'0x10' is hexadecimal; write it as a decimal number");
  EXPECT_EQ(number_error_of("1_000"), "'1_000' has grouped digits; write them without '_' and ','");
  EXPECT_EQ(number_error_of("1,000"), "'1,000' has grouped digits; write them without '_' and ','");
  EXPECT_EQ(number_error_of(".inf"), "expected a finite number, got '.inf'");
  EXPECT_EQ(number_error_of("nan"), "expected a finite number, got 'nan'");
  EXPECT_EQ(number_error_of("1e400"), "'1e400' is outside the range of a double");
  EXPECT_EQ(number_error_of("1e99999999999"), "'1e99999999999' is outside the range of a double");
  for (const char* text :
       {"", "-", ".", "1.", ".5", "1e", "1e+", "--1", "1 2", "1:30", "e5", "+"}) {
    EXPECT_EQ(number_error_of(text), "expected a number, got '" + std::string(text) + "'");
  }
  EXPECT_EQ(error_of("1_000 GB", Bytes::dimension),
            "'1_000' has grouped digits; write them without '_' and ','");
  EXPECT_EQ(error_of("0x10", Bytes::dimension),
            "'0x10' is hexadecimal; write it as a decimal number");
  EXPECT_EQ(error_of("1e308 GB", Bytes::dimension), "'1e308 GB' is outside the range of a double");
}

TEST(UnitText, CountsMayEndInTheLettersThatPeopleWrite) {
  EXPECT_EQ(parse_number("15T"), 15e12);
  EXPECT_EQ(parse_number("1.5k"), 1500);
  EXPECT_EQ(parse_number("-2M"), -2e6);
  EXPECT_EQ(parse_number("7G"), 7e9);
  EXPECT_EQ(number_error_of("T"), "expected a number, got 'T'");
  EXPECT_EQ(number_error_of("15 T"), "expected a number, got '15 T'");
  for (const auto& [text, meant] : {std::pair{"4K", "4k"}, {"1.5B", "1.5G"}}) {
    try {
      parse_number(text);
      ADD_FAILURE() << text;
    } catch (const UnitError& error) {
      EXPECT_EQ(error.suggestion(), meant);
    }
  }
  EXPECT_EQ(number_error_of("15kk"), "expected a number, got '15kk'");
}

TEST(UnitText, DaysYearsAndRatesOfThemAreUnits) {
  EXPECT_EQ(parse<Seconds>("2 d"), Seconds(172800));
  EXPECT_EQ(parse<Seconds>("1 y"), Seconds(8760 * 3600.0));
  EXPECT_EQ(parse<DollarsPerSecond>("8760 USD/y").base(),
            parse<DollarsPerSecond>("1 USD/h").base());
  EXPECT_EQ(parse<Hertz>("100 1/s"), parse<Hertz>("100 /s"));
  EXPECT_EQ(parse<Hertz>("60 /min"), Hertz(1));
}

TEST(UnitText, MassesOfCarbonAreUnitsWithAndWithoutABlank) {
  EXPECT_EQ(parse<CarbonMass>("2 t CO2"), CarbonMass(2e6));
  EXPECT_EQ(parse<CarbonMass>("2tCO2"), CarbonMass(2e6));
  EXPECT_EQ(parse<CarbonMass>("1.5 kg CO2"), parse<CarbonMass>("1500 gCO2"));
  EXPECT_EQ(parse<CarbonMass>("3 g CO2e"), CarbonMass(3));
  EXPECT_EQ(parse<CarbonIntensity>("3600 gCO2/kWh").base(), 1e-3);
  EXPECT_EQ(parse<CarbonIntensity>("400 kg CO2/MWh").base(),
            parse<CarbonIntensity>("400 gCO2/kWh").base());
  EXPECT_EQ(parse<CarbonIntensity>("0.4 t CO2/MWh").base(),
            parse<CarbonIntensity>("400 gCO2e/kWh").base());
  EXPECT_EQ(print(CarbonMass(2.5e6)), "2.5 tCO2");
  EXPECT_EQ(print(parse<CarbonIntensity>("35 kg CO2/MWh")), "35 gCO2/kWh");
  EXPECT_EQ(error_of("5 kg", CarbonMass::dimension),
            "expected mass of CO2 (e.g. 12 kg CO2, 3 t CO2), got '5 kg' with the unknown unit "
            "'kg'; did you mean kg CO2");
}

TEST(UnitText, EnergyIsCountedInWattHoursToo) {
  EXPECT_EQ(parse<Joules>("1 Wh"), Joules(3600));
  EXPECT_EQ(parse<Joules>("2 MWh"), Joules(7.2e9));
  EXPECT_EQ(parse<Joules>("1 GWh"), parse<Joules>("1000 MWh"));
}

TEST(UnitText, NumbersMayHaveSignFractionAndExponent) {
  EXPECT_EQ(parse_number("-1.5e3"), -1500);
  EXPECT_EQ(parse_number("+2"), 2);
  EXPECT_EQ(parse_number("1E+09"), 1e9);
  EXPECT_EQ(parse_number("0.1"), 0.1);
}

TEST(UnitText, PrintingChoosesAReadableUnit) {
  EXPECT_EQ(print(BytesPerSecond(3.35e12)), "3.35 TB/s");
  EXPECT_EQ(print(Bytes(85899345920.0)), "85.89934592 GB");
  EXPECT_EQ(print(Seconds(6e-7)), "600 ns");
  EXPECT_EQ(print(Seconds(7200)), "7200 s");
  EXPECT_EQ(print(Seconds(0)), "0 s");
  EXPECT_EQ(print(Watts(-700)), "-700 W");
  EXPECT_EQ(print(JoulesPerByte(40e-12)), "40 pJ/B");
  EXPECT_EQ(print(DollarsPerSecond(2.5 / 3600)), "2.5 USD/h");
  EXPECT_EQ(print_number(1e9), "1000000000");
  EXPECT_EQ(print_number(0.001), "0.001");
  EXPECT_EQ(print_number(1.5e-9), "1.5e-9");
}

TEST(UnitText, PrintedQuantitiesReadBackExactly) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-40, 40), mantissa(1, 10);
  for (const Dimension dimension : kAll) {
    for (int i = 0; i < 500; ++i) {
      const double value = mantissa(random) * std::pow(10.0, exponent(random));
      const std::string text = print_quantity(value, dimension);
      EXPECT_EQ(parse_quantity(text, dimension), value) << text;
      EXPECT_EQ(parse_number(print_number(-value)), -value);
    }
  }
}

TEST(UnitText, ExtremesReadBackExactly) {
  using Limits = std::numeric_limits<double>;
  for (const double value :
       {Limits::max(), Limits::min(), Limits::denorm_min(), Limits::epsilon()}) {
    for (const Dimension dimension : kAll) {
      EXPECT_EQ(parse_quantity(print_quantity(value, dimension), dimension), value);
    }
  }
}

TEST(UnitText, EveryOfferedUnitParses) {
  for (const Dimension dimension : kAll) {
    EXPECT_EQ(parse_quantity("0 " + base_unit(dimension), dimension), 0);
    EXPECT_EQ(parse_quantity("1 " + base_unit(dimension), dimension), 1);
    ASSERT_FALSE(unit_names(dimension).empty());
    for (const std::string& unit : unit_names(dimension)) {
      EXPECT_GT(parse_quantity("1 " + unit, dimension), 0) << unit;
    }
    for (const std::string& example : dimension_examples(dimension)) {
      EXPECT_GT(parse_quantity(example, dimension), 0) << example;
    }
  }
}

TEST(UnitText, WhatIsNotFiniteCannotBePrinted) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(print(Seconds(infinity)), std::logic_error);
  EXPECT_THROW(print_number(std::nan("")), std::logic_error);
}

}  // namespace
}  // namespace orrery::text_test
