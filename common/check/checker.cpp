#include "common/check/checker.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <stdexcept>

#include "common/check/test_data.h"
#include "common/core/launch.h"

namespace convladder {

namespace {

void append(std::string& message, const std::string& more) {
  if (!more.empty()) message += (message.empty() ? "" : "; ") + more;
}

// Not the default one, which a stage may use without having been given it.
cudaStream_t own_stream() {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    check_cuda(cudaStreamCreate(&made), "cudaStreamCreate");
    return made;
  }();
  return stream;
}

}  // namespace

std::vector<Record> Checker::check(const CheckCase& c, const std::vector<Stage>& stages,
                                   const Ended& ended) {
  std::vector<Record> records;
  for (const Stage& stage : stages) {
    records.push_back(new_record(stage, c.name, c.relu));
    begin(records.back(), stage, c.shape);
  }
  std::size_t done = 0;  // records that stand
  const auto fail_rest = [&](const std::string& why) {
    for (; done < records.size(); ended(records[done++])) set(records[done], "fail", why);
  };
  const auto is_skipped = [](const Record& record) { return record.status == "skipped"; };
  if (std::all_of(records.begin(), records.end(), is_skipped)) {
    for (const Record& record : records) ended(record);
    return records;
  }
  try {
    for (const DataKind kind : DATA_KINDS) {
      check_kind(kind, c, stages, records, [&] {
        if (kind == *std::rbegin(DATA_KINDS)) ended(records[done++]);
      });
    }
  } catch (const std::bad_alloc&) {
    fail_rest("out of host memory");
  } catch (const std::runtime_error& error) {
    fail_rest(error.what());
  }
  return records;
}

void Checker::set(Record& record, const char* status, const std::string& why) {
  record.status = status;
  append(record.message, why);
  error_ = why;
}

void Checker::check_kind(DataKind kind, const CheckCase& c, const std::vector<Stage>& stages,
                         std::vector<Record>& records, const std::function<void()>& next) {
  require_memory_for(c.shape);
  show_(c.name + ": " + to_string(kind));
  TestData data;
  try {
    data = make_test_data(c.shape, kind, c.seed);
  } catch (const InvalidArgument&) {  // the sum is too long to be exact in float32
    for (Record& record : records) append(record.message, std::string("no ") + to_string(kind));
    return;
  }
  const HostProblem host = host_problem(c.shape, data, c.bias, c.relu);
  const Reference reference = affordable_reference(host, c.seed);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (records[i].status.empty() || records[i].status == "pass") {
      show_(c.name + ": " + to_string(kind) + ": " + stages[i].name);
      check_stage(stages[i], kind, c, host, reference, records[i]);
    }
    next();
  }
}

void Checker::check_stage(const Stage& stage, DataKind kind, const CheckCase& c,
                          const HostProblem& host, const Reference& reference, Record& record) {
  if (lost_) {
    record.status = "skipped";
    append(record.message, "an earlier error made the GPU unusable");
    return;
  }
  try {
    const Trial trial(stage, host, c.placement, c.guards);
    trial.enqueue(own_stream());
    trial.wait();
    const Comparison result =
        check_output(trial, trial.output(), reference, rule_for(kind, stage.precision));
    record.status = result.pass ? "pass" : "fail";
    record.max_error_ratio = std::fmax(record.max_error_ratio, result.max_error_ratio);
    if (!result.pass) append(record.message, to_string(kind) + (": " + result.message));
  } catch (const InvalidArgument& error) {
    set(record, "rejected", error.what());
  } catch (const CudaError& error) {
    set(record, "fail", to_string(kind) + std::string(": ") + error.what());
    // A kernel that went astray leaves the GPU unusable: every later call fails as well.
    lost_ = cudaDeviceSynchronize() != cudaSuccess;
  }
}

}  // namespace convladder
