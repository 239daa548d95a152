#include "common/simulator/counts.h"

#include <algorithm>

#include "common/simulator/observer.h"

namespace convladder::simulator {
namespace {

GlobalCounts& operator+=(GlobalCounts& a, const GlobalCounts& b) {
  a.requests += b.requests;
  a.sectors += b.sectors;
  a.bytes += b.bytes;
  return a;
}

SharedCounts& operator+=(SharedCounts& a, const SharedCounts& b) {
  a.requests += b.requests;
  a.wavefronts += b.wavefronts;
  a.conflicts += b.conflicts;
  return a;
}

HopperCounts& operator+=(HopperCounts& a, const HopperCounts& b) {
  a.products += b.products;
  a.columns += b.columns;
  a.operand_wavefronts += b.operand_wavefronts;
  a.copies += b.copies;
  a.copied_sectors += b.copied_sectors;
  return a;
}

// One m16n8k8 of TF32 is one of them on a Hopper (HMMA.1688.F32.TF32).
constexpr const char* TENSOR_INSTRUCTIONS = "sm__inst_executed_pipe_tensor_op_hmma.sum";

double ratio(int64_t a, int64_t b) { return b == 0 ? 0.0 : static_cast<double>(a) / b; }

}  // namespace

InstructionCounts& InstructionCounts::operator+=(const InstructionCounts& other) {
  requests += other.requests;
  cost += other.cost;
  conflicts += other.conflicts;
  bytes += other.bytes;
  address = std::min(address, other.address);
  return *this;
}

KernelCounts& KernelCounts::operator+=(const KernelCounts& other) {
  launches += other.launches;
  load += other.load;
  store += other.store;
  copy_through_l1 += other.copy_through_l1;
  copy_past_l1 += other.copy_past_l1;
  shared_load += other.shared_load;
  shared_store += other.shared_store;
  shared_copy += other.shared_copy;
  pipe_wavefronts += other.pipe_wavefronts;
  tensor_instructions += other.tensor_instructions;
  reduction += other.reduction;
  atomic += other.atomic;
  shared_atomic += other.shared_atomic;
  constant_words += other.constant_words;
  hopper += other.hopper;
  sectors_read += other.sectors_read;
  sectors_written += other.sectors_written;
  products += other.products;
  work.insert(work.end(), other.work.begin(), other.work.end());
  blocks += other.blocks;
  barriers += other.barriers;
  shared_bytes = std::max(shared_bytes, other.shared_bytes);
  for (const auto& [instruction, count] : other.instructions) instructions[instruction] += count;
  return *this;
}

std::vector<KernelCounts> take_kernel_counts() {
  if constexpr (COUNTING) return take_launch_counts();
  return {};
}

std::vector<std::pair<std::string, double>> metrics(const KernelCounts& counts) {
  std::vector<std::pair<std::string, double>> all = {
      {"sectors_touched_read.sum", counts.sectors_read},
      {"sectors_touched_write.sum", counts.sectors_written}};
  if (counts.library) return all;

  // L1 counts asynchronous copies among the loads (read from an H200; the instructions' own counters,
  // smsp__sass_..., do not).
  const double copy_requests = counts.copy_through_l1.requests + counts.copy_past_l1.requests;
  const double copy_sectors = counts.copy_through_l1.sectors + counts.copy_past_l1.sectors;
  for (const bool load : {true, false}) {
    const GlobalCounts& count = load ? counts.load : counts.store;
    const std::string suffix = std::string("_mem_global_op") + (load ? "_ld" : "_st");
    all.push_back({"l1tex__t_requests_pipe_lsu" + suffix + ".sum",
                   count.requests + (load ? copy_requests : 0)});
    all.push_back(
        {"l1tex__t_sectors_pipe_lsu" + suffix + ".sum", count.sectors + (load ? copy_sectors : 0)});
    all.push_back({"smsp__sass_data_bytes" + suffix + ".sum", count.bytes});
    all.push_back({"smsp__sass_average_data_bytes_per_sector" + suffix + ".ratio",
                   ratio(count.bytes, count.sectors)});
  }
  const std::pair<const char*, const GlobalCounts&> copies[] = {{"_access", counts.copy_through_l1},
                                                                {"_bypass", counts.copy_past_l1}};
  for (const auto& [way, count] : copies) {
    const std::string suffix = std::string("_pipe_lsu_mem_global_op_ldgsts_cache") + way + ".sum";
    all.push_back({"sm__sass_l1tex_t_requests" + suffix, count.requests});
    all.push_back({"sm__sass_l1tex_t_sectors" + suffix, count.sectors});
    all.push_back({"sm__sass_data_bytes_mem_global_op_ldgsts_cache" + std::string(way) + ".sum",
                   count.bytes});
  }
  const std::pair<const char*, const SharedCounts&> shared[] = {{"_ld", counts.shared_load},
                                                                {"_st", counts.shared_store}};
  for (const auto& [operation, count] : shared) {
    const std::string suffix = std::string("_mem_shared_op") + operation + ".sum";
    all.push_back({std::string("shared_requests") + operation + ".sum", count.requests});
    all.push_back({"l1tex__data_pipe_lsu_wavefronts" + suffix, count.wavefronts});
    all.push_back({"l1tex__data_bank_conflicts_pipe_lsu" + suffix, count.conflicts});
  }
  all.push_back({"shared_requests_ldgsts.sum", counts.shared_copy.requests});
  all.push_back({"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
                 counts.shared_copy.wavefronts});
  all.push_back({"bank_conflicts_ldgsts.sum", counts.shared_copy.conflicts});
  all.push_back({"pipe_wavefronts_at_least.sum", counts.pipe_wavefronts});
  if (counts.knows_products) {
    all.push_back({"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", counts.products});
  }
  const auto add = [&](const std::string& name, int64_t count) {  // most kernels have none
    if (count > 0) all.push_back({name, count});
  };
  add(TENSOR_INSTRUCTIONS, counts.tensor_instructions);
  for (const bool red : {true, false}) {
    const GlobalCounts& count = red ? counts.reduction : counts.atomic;
    const std::string suffix =
        std::string("_pipe_lsu_mem_global_op_") + (red ? "red.sum" : "atom.sum");
    add("l1tex__t_requests" + suffix, count.requests);
    add("l1tex__t_sectors" + suffix, count.sectors);
  }
  add("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum", counts.shared_atomic.wavefronts);
  add("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum", counts.shared_atomic.conflicts);
  add("constant_words.sum", counts.constant_words);
  add("sm__inst_executed_pipe_tensor_op_gmma.sum", counts.hopper.products);
  add("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum", counts.hopper.operand_wavefronts);
  add("sm__sass_inst_executed_op_tma_ld.sum", counts.hopper.copies);
  add("l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum", counts.hopper.copied_sectors);
  return all;
}

}  // namespace convladder::simulator
