#include "common/measure/bench_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/check/record.h"
#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/core/extents.h"

namespace convladder {
namespace {

constexpr int WARM_UPS = 2;  // rounds before those that count: the clock rises from its idle state

// cuDNN in a stage's place: whose tensors it takes.
struct CudnnContestant {
  Stage stage;
  const char* competitor;
  CudnnLayout layout = CudnnLayout::kNchw;
  CudnnRule rule = CudnnRule::kWithin;
};

constexpr Stage cudnn(const char* name, Precision precision) {
  return {name, "", nullptr, nullptr, false, precision};
}

constexpr CudnnContestant CUDNN[] = {
    {cudnn("cuDNN FP32", Precision::kFp32), "cudnn"},
    {cudnn("cuDNN FP32, any plan", Precision::kFp32), "cudnn_any", CudnnLayout::kNchw,
     CudnnRule::kAny},
    {cudnn("cuDNN FP32 NHWC", Precision::kFp32), "cudnn", CudnnLayout::kNhwc},
    {cudnn("cuDNN TF32", Precision::kTf32), "cudnn"},
    {cudnn("cuDNN TF32 NHWC", Precision::kTf32), "cudnn", CudnnLayout::kNhwc}};

// Runs `action`. What it throws becomes the record's status and message; true if it throws nothing.
template <typename Action>
bool attempt(Json& record, const Action& action) {
  const auto end = [&](const char* status, const char* why) {
    record["status"] = status;
    record["message"] = why;
    return false;
  };
  try {
    action();
    return true;
  } catch (const NotForShape& error) {
    return end("skipped", error.what());
  } catch (const InvalidArgument& error) {
    return end("rejected", error.what());
  } catch (const Skipped& reason) {
    return end("skipped", reason.what());
  } catch (const std::bad_alloc&) {
    return end("fail", "out of host memory");
  } catch (const std::exception& error) {
    return end("fail", error.what());
  }
}

Json competitor_record(const char* name, const std::string& precision, const std::string& layout,
                       const std::string& library) {
  return {{"competitor", name}, {"precision", precision},
          {"layout", layout},   {"library", library},
          {"algorithm", ""},    {"status", ""},
          {"message", ""},      {"max_error_ratio", std::nan("")},
          {"cold_ms", nullptr}, {"warm_ms", nullptr}};
}

// Winograd's algorithm and tensor cores need less than the FLOP at the FP32 peak: of their floor the
// bytes remain.
Work without_flops(Work work) {
  work.needed_flops = 0;
  return work;
}

// Who takes turns in this process: a stage, or cuDNN in one precision. All have the same tensors.
struct Contestant {
  const Stage& stage;
  const CudnnContestant* cudnn;  // null: a stage
  Json record;
  std::unique_ptr<Trial> trial = nullptr;
  std::function<void()> enqueue = nullptr;
  std::function<void()> finish = [] {};
  Samples samples = {};
  bool out = false;  // the record says why
  bool wrong = false;
};

class ProblemBench {
 public:
  ProblemBench(const BenchSettings& settings, const Machine& machine, const Problem& problem)
      : settings_(settings), machine_(machine), problem_(problem) {
    for (const Stage& stage : settings.stages) {
      Json record = to_json(new_record(stage, problem.name, false));
      record["precision"] = to_string(stage.precision);
      record["cold_ms"] = record["warm_ms"] = nullptr;
      contestants_.push_back({stage, nullptr, record});
      contestants_.back().out = record["status"] == "skipped";
    }
    for (const CudnnContestant& each : CUDNN) {
      if (settings.cudnn.empty()) break;
      const char* layout = each.layout == CudnnLayout::kNhwc ? "nhwc" : "nchw";
      contestants_.push_back({each.stage, &each,
                              competitor_record(each.competitor, to_string(each.stage.precision),
                                                layout, "cuDNN " + settings.cudnn)});
    }
    if (!settings.pytorch) return;
    const Json greeting = settings.pytorch->greeting();
    for (const Json& way : greeting["ways"]) {
      pytorch_.push_back(competitor_record("pytorch", way[0], way[1], greeting["library"]));
    }
  }

  Json run() {
    Json result = {{"problem", problem_.name}, {"bias", problem_.bias}}, outcome = Json::object();
    attempt(outcome, [&] {
      const ConvShape shape = make_conv_shape(problem_.arguments);
      const Work work = work_of(shape, problem_.bias);
      result["shape"] = to_string(shape);
      result["flop"] = work.flops;
      result["needed_flop"] = work.needed_flops;
      result["least_bytes"] = work.bytes;
      result["cold_floor_ms"] = floor_ms(work, machine_, Cache::kCold);
      result["warm_floor_ms"] = floor_ms(work, machine_, Cache::kWarm);
      measure(shape, work, result);
    });
    result["error"] = outcome.empty() ? "" : outcome["message"];
    result["records"] = result["competitors"] = Json::array();
    const auto add = [&](const char* list, Json& record) {
      // What ended the whole problem ended all who have no other result.
      if (record["status"] == "") record.update(outcome);
      result[list].push_back(record);
    };
    for (Contestant& each : contestants_) add(each.cudnn ? "competitors" : "records", each.record);
    for (Json& record : pytorch_) add("competitors", record);
    return result;
  }

 private:
  void measure(const ConvShape& shape, const Work& work, Json& result) {
    require_memory_for(shape);
    settings_.show("reference");
    const TestData data = make_test_data(shape, DataKind::kUniform, settings_.seed);
    const HostProblem host = host_problem(shape, data, problem_.bias);
    const Reference reference = affordable_reference(host, settings_.seed);
    const Trial tensors(CUDNN[0].stage, host);
    Stopwatch stopwatch(machine_.l2_bytes);
    attempt_each("check", [&](Contestant& each) {
      each.trial = std::make_unique<Trial>(each.stage, tensors);
      prepare(each, reference, stopwatch);
    });
    ask_pytorch(request_for(shape));
    result["gpu_before"] = query_gpu_state(machine_.pci_bus_id);
    // In turns: what changes in the meantime (clock, temperature, another program) meets all alike.
    for (int round = -WARM_UPS; round < settings_.repeats; ++round) {
      const auto name = fmt::format("round {} of {}", std::max(0, round + 1), settings_.repeats);
      attempt_each(name, [&](Contestant& each) {
        if (round == 0) each.samples.drop();
        stopwatch.time(each.enqueue, each.samples);
      });
      ask_pytorch({{"do", "round"}});
    }
    result["gpu_after"] = query_gpu_state(machine_.pci_bus_id);
    attempt_each("check", [&](Contestant& each) {
      require_right(each, reference);
      each.record["status"] = each.wrong ? "fail" : "pass";
      const bool fp32_units = !each.cudnn && !each.stage.tensor_cores;
      add_times(each.record, each.samples, fp32_units ? work : without_flops(work),
                each.stage.precision, machine_);
    });
    finish_pytorch(work);
  }

  // action(contestant) for those that are still in it.
  template <typename Action>
  void attempt_each(const std::string& what, const Action& action) {
    for (Contestant& each : contestants_) {
      if (each.out) continue;
      settings_.show(what + ": " + each.stage.name);
      each.out = !attempt(each.record, [&] { action(each); });
      if (each.out) each.trial.reset();
    }
  }

  void prepare(Contestant& each, const Reference& reference, Stopwatch& stopwatch) {
    if (!each.cudnn) {
      each.enqueue = [trial = each.trial.get()] { trial->enqueue(); };
      require_right(each, reference);
      Record begun;  // what "auto" chooses
      begin(begun, each.stage, each.trial->arguments().shape);
      each.record["message"] = begun.message;
      return;
    }
    const CudnnPlan plan = make_cudnn_plan(
        each.trial->arguments(), each.stage.precision, each.cudnn->layout, each.cudnn->rule,
        stopwatch,
        [&](const std::function<void()>& enqueue) { return check(each, enqueue, reference); });
    each.enqueue = plan.enqueue;
    each.finish = plan.finish;
    each.record["algorithm"] = plan.algorithm;
    each.record["message"] = plan.remark;
  }

  // Holds what `enqueue` computes against the reference. Before it, the output is NaN.
  Comparison check(Contestant& each, const std::function<void()>& enqueue,
                   const Reference& reference) {
    each.trial->fill_nan();
    enqueue();
    each.trial->wait();
    each.trial->read_output(output_);
    return check_output(*each.trial, output_, reference, Rule::kBounded);
  }

  void require_right(Contestant& each, const Reference& reference) {
    const auto enqueue = [&each] {
      each.enqueue();
      each.finish();
    };
    const Comparison result = check(each, enqueue, reference);
    Json& ratio = each.record["max_error_ratio"];
    ratio = std::fmax(ratio.get<double>(), result.max_error_ratio);
    const bool any = each.cudnn && each.cudnn->rule == CudnnRule::kAny;
    if (!result.pass && !any) {
      if (!settings_.wrong_too) throw std::runtime_error(result.message);
      each.wrong = true;
      each.record["message"] = result.message;
    }
    if (!each.cudnn || each.stage.precision != Precision::kTf32) return;
    // A library that may round to TF32 may also choose not to: its error tells.
    const ConvShape& shape = each.trial->arguments().shape;
    const double allowed =
        error_factor(shape, Precision::kTf32) / error_factor(shape, Precision::kFp32);
    each.record["tf32_used"] = result.max_error_ratio * allowed > 1;
  }

  Json request_for(const ConvShape& shape) const {
    Json problem = {{"bias", problem_.bias}}, bounds;
    const ConvArguments arguments = to_arguments(shape);
    for (const Extent& extent : EXTENTS) problem[extent.name] = arguments.*extent.given;
    for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
      bounds[to_string(precision)] = error_factor(shape, precision) * 0x1p-24;
    }
    return {{"do", "prepare"},
            {"problem", problem},
            {"seed", settings_.seed},
            {"bounds", bounds},
            {"flush_bytes", static_cast<int64_t>(2 * machine_.l2_bytes)},
            {"flushes", {FLUSHES_AT_FIRST, FLUSHES_AT_MOST}}};
  }

  // What goes wrong with the process is in all its records.
  Json ask_pytorch(const Json& request) {
    Json answer, outcome = Json::object();
    if (pytorch_.empty() || pytorch_[0]["status"] != "") return answer;
    attempt(outcome, [&] { answer = settings_.pytorch->ask(request); });
    for (Json& record : pytorch_) record.update(outcome);
    return answer;
  }

  // What goes wrong with one of its ways is in that record.
  void finish_pytorch(const Work& work) {
    const Json answer = ask_pytorch({{"do", "finish"}, {"repeats", settings_.repeats}});
    for (std::size_t i = 0; !answer.empty() && i < pytorch_.size(); ++i) {
      const Json& way = answer["ways"][i];
      pytorch_[i].update(way["record"]);
      if (pytorch_[i]["status"] != "pass") continue;
      const bool fp32 = pytorch_[i]["precision"] == "fp32";
      add_times(pytorch_[i], {way["cold"], way["warm"], way["host_late"]}, without_flops(work),
                fp32 ? Precision::kFp32 : Precision::kTf32, machine_);
    }
  }

  const BenchSettings& settings_;
  const Machine& machine_;
  const Problem& problem_;
  std::vector<Contestant> contestants_;
  std::vector<Json> pytorch_;  // its records
  std::vector<float> output_;  // the last that was read: gigabytes, and one memory for all
};

}  // namespace

Json bench_problem(const Problem& problem, const BenchSettings& settings, const Machine& machine) {
  return ProblemBench(settings, machine, problem).run();
}

}  // namespace convladder
