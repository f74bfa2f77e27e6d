// SPDX-License-Identifier: Apache-2.0
// The plotting scripts, as far as they go without matplotlib: what they say of wrong files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/integration/program.h"

namespace scripts_test {
namespace {

using namespace integration;
using testing::HasSubstr;
using testing::Not;

class PlottingScripts : public InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    if (std::system("python3 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  }
  static Outcome script(const std::string& words) {
    return shell("ORRERY=" ORRERY_BINARY " python3 " ORRERY_SOURCE_DIR "/scripts/" + words);
  }
  /// What a program that uses the scripts prints, through `pipe`.
  static Outcome python(const std::string& program, const std::string& pipe = "") {
    return shell("cd " + std::string(ORRERY_SOURCE_DIR) +
                 "/scripts && PYTHONDONTWRITEBYTECODE=1 python3 -c \"" + program + "\"" + pipe);
  }
};

TEST_F(PlottingScripts, SayInASentenceWhatAFileLacks) {
  const std::string file = write("other.csv", "a,b\n1,2\n");
  for (const std::string& command :
       std::vector{"plot_accuracy.py " + file, "plot_collectives.py --system h200_sxm " + file}) {
    const Outcome run = script(command);
    EXPECT_EQ(run.code, 2) << command << run.out;
    EXPECT_THAT(run.out, HasSubstr("other.csv: no column 'system'; write the file with: orrery"));
    EXPECT_THAT(run.out, Not(HasSubstr("Traceback")));
  }
}

TEST_F(PlottingScripts, NameLineAndColumnOfWhatIsNoNumber) {
  const std::string file = write("rows.csv",
                                 "system,precision,latency_us,predicted_us\n"
                                 "h200_sxm,bf16,1,1\n"
                                 "h200_sxm,bf16,fast,1\n");
  const Outcome run = script("plot_accuracy.py " + file);
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("rows.csv:3: column 'latency_us' wants a number, got 'fast'"));
}

TEST_F(PlottingScripts, SayThatAFileIsMissingOrNoJson) {
  const Outcome missing = script("plot_accuracy.py " + path("none.csv"));
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.out, HasSubstr("none.csv: No such file or directory"));
  const Outcome store =
      script("plot_serving.py " + write("text.db", "no database, but long enough\n"));
  EXPECT_EQ(store.code, 2);
  EXPECT_THAT(store.out, HasSubstr("text.db: file is not a database"));
  const Outcome trace = script("plot_memory.py " + write("step.pftrace", "no trace"));
  EXPECT_EQ(trace.code, 2);
  EXPECT_THAT(trace.out, HasSubstr("step.pftrace: this is no timeline; write it with: orrery run"));
  const Outcome text = script("plot_roofline.py " + write("device.json", "accelerator: h200\n"));
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.out, HasSubstr("device.json: this is no JSON"));
}

// By hand: 1, 2, 4, 8 in years 0, 1, 2, 3 double each year, with no error.
TEST_F(PlottingScripts, DoublingTimesAreSlopesOfLogarithms) {
  const std::string head =
      "year,name,line,fp32_tflops,matrix_tflops,bandwidth_gbs,memory_gb,watts,usd\n";
  std::string rows;
  for (int year = 0; year < 4; ++year) {
    const std::string number = std::to_string(1 << year);
    rows += std::to_string(2000 + year) + ",g,graphics," + number + ",," + number + ",1,100,100\n";
  }
  const Outcome run = script("plot_devices.py --trends " + write("doubling.csv", head + rows));
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("all           4   1.0 +- 0.0 years   +100 %"));
  EXPECT_THAT(script("plot_devices.py --trends " + write("few.csv", head)).out,
              HasSubstr("few.csv: no rows"));
}

// Rows that rest on files of the library have the figures of these files.
TEST_F(PlottingScripts, GenerationsHaveTheFiguresOfTheLibrary) {
  const Outcome list = orrery("describe accelerators --json", false);
  ASSERT_EQ(list.code, 0);
  const std::string devices = write("devices.json", list.out);
  const Outcome run = shell(
      "python3 -c \"import csv, json, re, sys\n"
      "known = {d['name']: d for d in json.load(open('" +
      devices +
      "'))}\n"
      "n = 0\n"
      "for row in csv.DictReader(open('" ORRERY_SOURCE_DIR
      "/scripts/gpu_generations.csv')):\n"
      "    found = re.match('configs/accelerators/.*/(.*).yaml', row['source'])\n"
      "    if not found: continue\n"
      "    d = known[found.group(1)]; n += 1\n"
      "    for column, key, unit in (('fp32_tflops', 'vector', 1e12), ('bandwidth_gbs', "
      "'bandwidth', 1e9), "
      "('memory_gb', 'capacity', 1e9), ('watts', 'tdp', 1)):\n"
      "        assert abs(float(row[column]) * unit / d[key] - 1) < 0.03, (row['name'], column, "
      "d[key])\n"
      "    if row['matrix_tflops']: assert abs(float(row['matrix_tflops']) * 1e12 / (d['bf16'] or "
      "d['fp16']) - 1) < 0.01, row['name']\n"
      "    assert abs(float(row['year']) - d['year']) <= 1, row['name']\n"
      "print(n)\"");
  EXPECT_EQ(run.out, "22\n");
}

TEST_F(PlottingScripts, SayThatAFileIsNoTimelineOrHasNoStep) {
  const Outcome timeline = script("plot_timeline.py " + write("step.pftrace", "no protobuf"));
  EXPECT_EQ(timeline.code, 2);
  EXPECT_THAT(timeline.out, HasSubstr("step.pftrace: this is no timeline; write it with: orrery"));
  const Outcome step = script("plot_breakdown.py " + write("other.json", "{\"metrics\": {}}"));
  EXPECT_EQ(step.code, 2);
  EXPECT_THAT(step.out, HasSubstr("other.json: has no breakdown of a step; write it with: orrery"));
}

TEST_F(PlottingScripts, SayThatAStepDoesNotFit) {
  const std::string experiment =
      write("large.yaml",
            "experiment: training\nsystem: dgx_h100\nmodel: llama_3_1_405b\n"
            "batch: {global: 1, sequence: 512}\n");
  const std::string result = path("large.json");
  ASSERT_EQ(orrery("run " + experiment + " --json > " + result).code, 5);
  const Outcome bars = script("plot_breakdown.py " + result);
  EXPECT_EQ(bars.code, 2);
  EXPECT_THAT(bars.out, HasSubstr("large.json: has no step time: does not fit: a rank needs"));
}

// Kernels of every class share the compute time of a step: half of these are of adapters.
TEST_F(PlottingScripts, BarsHaveKernelsOfEveryClass) {
  const std::string result = write(
      "hybrid.json",
      "{\"metrics\": {\"step_time_s\": 8}, \"breakdown\": {\"compute_s\": 8}, \"classes\": ["
      "{\"name\": \"gemm\", \"time_s\": 3}, {\"name\": \"scan\", \"time_s\": 1}, "
      "{\"name\": \"lora\", \"time_s\": 4}, "
      "{\"name\": \"optimizer\", \"time_s\": 5}, {\"name\": \"all_gather tp\", \"time_s\": 5}]}");
  const Outcome parts = python(
      "from plot_breakdown import parts_of; "
      "p = parts_of('" +
      result + "')[0]; print(p['gemm'], p['scan'], p['lora'])");
  EXPECT_EQ(parts.out, "3.0 1.0 4.0\n");
}

TEST_F(PlottingScripts, ReadTimelinesOfTheProgramToTheirEnd) {
  const std::string experiment =
      write("step.yaml",
            "experiment: training\nsystem: dgx_h100\nmodel: llama_3_1_8b\nlayers_only: 2\n"
            "batch: {global: 1, sequence: 512}\n");
  const Outcome run = orrery("run " + experiment + " --trace " + path("step.pftrace"));
  ASSERT_EQ(run.code, 0) << run.out;
  const Outcome read = python(
      "from timelines import Timeline; "
      "t = Timeline('" +
      path("step.pftrace") +
      "'); print(all(s.end >= s.begin for s in t.spans), "
      "sum(s.name == 'layer 1 gate-up' for s in t.spans), t.spans[0].stream)");
  EXPECT_EQ(read.out, "True 1 compute\n");
}

// A step with activations on the host: copies of layers are not among other transfers, and pictures
// of the memory go on to its end, which is behind the last tensor.
TEST_F(PlottingScripts, KnowCopiesToHostsAndTheEndOfAStep) {
  const std::string experiment =
      write("offloaded.yaml",
            "experiment: training\nsystem: dgx_h100\nnodes: 1\nmodel: gpt2\n"
            "batch: {global: 1, sequence: 512}\nactivation_offload: 2\n");
  const Outcome run = orrery("run " + experiment + " --trace " + path("offloaded.pftrace"));
  ASSERT_EQ(run.code, 0) << run.out;
  const Outcome read = python(
      "from timelines import Timeline; "
      "from plot_timeline import kind_of; from plot_memory import read_trace; p = '" +
      path("offloaded.pftrace") +
      "'; t = Timeline(p); kinds = [kind_of(s) for s in t.spans]; "
      "print(kinds.count('host copies'), kinds.count('others'), "
      "read_trace(p)[1] == max(s.end for s in t.spans))");
  EXPECT_EQ(read.out, "4 0 True\n");
}

TEST_F(PlottingScripts, OfStoresSayWhatIsMissing) {
  const std::string words = " --minimize time_s --maximize flops_per_s";
  EXPECT_THAT(script("plot_pareto.py " + path("none.db") + words).out,
              HasSubstr("none.db: no such file"));
  EXPECT_THAT(script("plot_pareto.py " + write("text.db", "no database") + words).out,
              HasSubstr("text.db: file is not a database"));
  const std::string sweep = write(
      "s.yaml",
      "sweep: s\ncases:\n  - name: a\n    base: {experiment: operator, system: dgx_h100, operator: "
      "{kind: gemm, m: 64, n: 64, k: 64}}\n    axes: {grid: {operator.m: [64, 128, 256]}}\n");
  ASSERT_EQ(orrery("sweep run " + sweep + " --db " + path("s.db")).code, 0);
  const Outcome metric =
      script("plot_pareto.py " + path("s.db") + " --minimize tme --minimize time_s");
  EXPECT_EQ(metric.code, 2);
  EXPECT_THAT(metric.out, HasSubstr("s.db: no result has the metric 'tme'"));
  const Outcome where =
      script("plot_pareto.py " + path("s.db") + words + " --where 'time_s < 5 GB'");
  EXPECT_EQ(where.code, 2);
  EXPECT_THAT(where.out, HasSubstr("--where:1:"));
  const Outcome none = script("plot_pareto.py " + path("s.db") + words + " --where 'time_s > 5 s'");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.out, HasSubstr("keeps the condition"));
  const Outcome json = script("plot_sensitivity.py " + write("other.json", "{}"));
  EXPECT_EQ(json.code, 2);
  EXPECT_THAT(json.out, HasSubstr("other.json: has no sensitivities of an experiment"));
  EXPECT_THAT(metric.out, Not(HasSubstr("Traceback")));
}

TEST_F(PlottingScripts, TakeTheConditionsThatTheProgramTakes) {
  const std::string sweep = write(
      "s.yaml",
      "sweep: s\ncases:\n  - name: a\n    base: {experiment: operator, system: dgx_h100, operator: "
      "{kind: gemm, m: 64, n: 64, k: 64}}\n    axes: {grid: {operator.m: [64, 128, 8192]}}\n");
  ASSERT_EQ(orrery("sweep run " + sweep + " --db " + path("s.db")).code, 0);
  const Outcome read =
      shell("cd " ORRERY_SOURCE_DIR "/scripts && ORRERY=" ORRERY_BINARY
            " PYTHONDONTWRITEBYTECODE=1 python3 -c \"from stores import *; store = open_store('" +
            path("s.db") + "', ''); print(len(read_results(store, '" + path("s.db") +
            "', ['time_s'], 'operator.m <= 128 and time_s < 1 s', '')))\"");
  EXPECT_EQ(read.out, "2\n");
}

TEST_F(PlottingScripts, FindTheEffectsThatTheProgramFinds) {
  const std::string sweep = write(
      "s.yaml",
      "sweep: s\ncases:\n  - name: a\n    base: {experiment: operator, system: dgx_h100, operator: "
      "{kind: gemm, m: 64, n: 64, k: 64}}\n    axes: {grid: {operator.m: [64, 8192], operator.n: "
      "[64, 8192]}}\n    variants: [{name: H100, system: dgx_h100}, {name: B200, system: "
      "dgx_b200}]\n");
  ASSERT_EQ(orrery("sweep run " + sweep + " --db " + path("s.db")).code, 0);
  const Outcome csv = orrery("sensitivity " + path("s.db") + " time_s --csv", false);
  const Outcome read = python(
      "from plot_sensitivity import *; "
      "import csv, io\n"
      "store = open_store('" +
          path("s.db") +
          "', '')\nrows = read_results(store, '', ['time_s'], '', '')\ninputs = "
          "read_inputs(store, rows)\n"
          "values = [row['time_s'] for row in rows]\n"
          "for path in inputs:\n  swing = main_effects(inputs, path, values).values()\n"
          "  print(path, '%.4e' % (max(swing) - min(swing)))",
      " | sort");
  const Outcome program = shell(
      "python3 -c \"import csv\nends = {}\n"
      "for row in csv.DictReader(open('" +
      write("effects.csv", csv.out) +
      "')):\n  ends.setdefault(row['input'], []).append(float(row['effect']))\n"
      "for path, some in ends.items(): print(path, '%.4e' % (max(some) - min(some)))\" | sort");
  EXPECT_EQ(read.out, program.out);
  EXPECT_THAT(read.out, HasSubstr("operator.m "));
  EXPECT_THAT(read.out, HasSubstr("system.system "));
}

}  // namespace
}  // namespace scripts_test
