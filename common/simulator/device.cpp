// The simulated device: one worker per core, which share out the blocks of a grid.
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include "common/core/program.h"
#include "common/simulator/enqueueing.h"
#include "common/simulator/errors.h"
#include "common/simulator/fault.h"
#include "common/simulator/fibre.h"
#include "common/simulator/launch.h"
#include "common/simulator/random.h"
#include "common/simulator/report.h"
#include "common/simulator/worker.h"

namespace convladder::simulator {
namespace {

// The number in an environment variable, if it is set and not empty.
std::optional<uint64_t> number_from_environment(const char* name, uint64_t least, uint64_t most) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (*end || *text == '-' || errno || value < least || value > most) {
    const std::string what = std::string(name) + " is '" + text + "'; it must be a number from " +
                             std::to_string(least) + " to " + std::to_string(most);
    if (!is_program()) throw std::invalid_argument(what);
    std::fprintf(stderr, "ladder: error: %s\n", what.c_str());  // nobody catches it in a program
    std::_Exit(2);
  }
  return value;
}

std::atomic<uint64_t>& order_seed() {
  static std::atomic<uint64_t> seed{
      number_from_environment("CONVLADDER_SIM_SEED", 0, UINT64_MAX).value_or(0)};
  return seed;
}
// A program's main() may change the environment.
[[maybe_unused]] const uint64_t first_seed = is_program() ? order_seed().load() : 0;

std::atomic<uint64_t> last_blocks{0};  // 0: all

// What cudaFuncSetAttribute() allows a kernel of dynamic shared memory, instead of the usual.
std::mutex dynamic_limits_mutex;
std::unordered_map<const void*, std::size_t> dynamic_limits;

thread_local std::vector<LaunchWork>* plan = nullptr;

// What CUDA says of such a launch, in words; empty where it runs it.
bool is_valid(dim3 grid, dim3 block);
bool is_too_large_to_cooperate(const Grid& grid) {
  if (grid.kind != LaunchKind::kCooperative) return false;
  int resident = 0, multiprocessors = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, grid.kernel, grid.threads.x * grid.threads.y * grid.threads.z, grid.dynamic_bytes);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  return uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z >
         uint64_t(resident) * multiprocessors;
}
std::string reason_to_refuse(const Grid& grid) {
  const auto extents = [](dim3 d) { return fmt::format("{} x {} x {}", d.x, d.y, d.z); };
  const dim3 threads = grid.threads;
  const uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  if (!is_valid(grid.blocks, threads)) {
    if (count == 0) return "its blocks have no threads: " + extents(threads);
    if (count > 1024) return fmt::format("a block of {} threads, and 1024 is the most", count);
    if (is_valid(grid.blocks, 1))
      return "a block of " + extents(threads) + ", and 64 is the most of z";
    const bool is_empty = grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0;
    return "a grid of " + extents(grid.blocks) +
           (is_empty ? ", which has no blocks" : ", and 2147483647 x 65535 x 65535 is the most");
  }
  if (!is_stream(grid.stream)) return "on a stream that there is not, or no longer";
  const std::size_t limit = dynamic_limit(grid.kernel), own = static_shared_bytes(grid.kernel);
  if (own > DYNAMIC_BYTES) {
    return fmt::format("{} bytes of __shared__ variables, and nvcc takes {}", own, DYNAMIC_BYTES);
  }
  if (grid.dynamic_bytes == 0 ||
      (grid.dynamic_bytes <= limit && grid.dynamic_bytes + own <= MOST_DYNAMIC_BYTES)) {
    return is_too_large_to_cooperate(grid)
               ? "more blocks than run at a time, which a cooperative launch needs"
               : "";
  }
  return fmt::format("{} bytes of shared memory{}, and {} are the most{}", grid.dynamic_bytes,
                     own > 0 ? fmt::format(" besides the {} of its variables", own) : "",
                     std::min(limit, MOST_DYNAMIC_BYTES - own),
                     limit + own == DYNAMIC_BYTES ? " without cudaFuncSetAttribute()" : "");
}

// CUDA's limits for a launch.
bool is_valid(dim3 grid, dim3 block) {
  const auto within = [](dim3 d, unsigned x, unsigned y, unsigned z) {
    return d.x >= 1 && d.x <= x && d.y >= 1 && d.y <= y && d.z >= 1 && d.z <= z;
  };
  return within(grid, 0x7fffffff, 65535, 65535) && within(block, 1024, 1024, 64) &&
         block.x * block.y * block.z <= 1024;
}

// The order in which the blocks from `begin` to before `end` have their turns:
// i -> begin + (first + i * step) mod count, where step has no divisor in common with their count,
// so that each has its turn once.
class BlockOrder {
 public:
  BlockOrder(uint64_t begin, uint64_t end, uint64_t seed)  // seed 0: begin, begin + 1, ...
      : begin_(begin), count_(end - begin) {
    if (seed == 0) return;
    Random random(seed);
    first_ = random.next() % count_;
    do {
      step_ = random.next() % count_ + 1;
    } while (std::gcd(step_, count_) != 1);
  }
  uint64_t operator[](uint64_t i) const {
    const auto turn = first_ + static_cast<unsigned __int128>(i) * step_;
    return begin_ + static_cast<uint64_t>(turn % count_);
  }
  uint64_t count() const { return count_; }

 private:
  uint64_t begin_, count_, first_ = 0, step_ = 1;
};

double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }  // of all threads

class Device {
 public:
  // Made on first use, in a forked process once more: threads stay behind with the parent. Throws
  // std::invalid_argument when CONVLADDER_SIM_THREADS is no number from 1 to 1024.
  static Device& instance();

  ~Device();

  // Runs `grid`, or its last blocks where only they are asked for, to the end, after any other that
  // another host thread has under way. Throws what the first failing block in order threw (KernelError,
  // std::bad_alloc), whichever is the first in time; blocks not begun are left out.
  void run(const Grid& grid);

 private:
  Device();
  void work();
  void work_on_grid(std::optional<Worker>& worker);
  void wait_for_blocks(std::unique_lock<std::mutex>& lock);
  bool may_begin_another() const;
  bool has_stacks_for_another() const;

  friend std::string simulator::wait_for_other_blocks(unsigned rounds, bool repeats);
  friend void simulator::end_wait_for_other_blocks();
  friend std::string simulator::progress_of_launch();

  std::mutex one_grid_;  // held while a grid runs

  std::mutex mutex_;  // guards all below, but for the atomic
  std::condition_variable wake_, done_;
  const Grid* grid_ = nullptr;
  const BlockOrder* order_ = nullptr;
  std::atomic<uint64_t> next_block_{0};
  double began_ = 0;  // seconds of a processor before it
  int openings_ = 0;  // workers that may still join the grid
  int busy_ = 0;      // workers that have joined, or may, and are not done
  // Those of them whose block waits for others, and when they last found nothing new.
  std::map<std::thread::id, std::chrono::steady_clock::time_point> idle_;
  std::chrono::steady_clock::time_point last_opening_{};
  uint64_t turn_ = 0;              // counts up when there is one less of these
  std::vector<std::thread> more_;  // workers for this grid alone, since blocks wait for others
  std::exception_ptr error_;
  uint64_t failed_ = 0;                // whose that is, in the grid's order
  std::set<std::thread::id> gave_up_;  // workers whose block waited for one that has failed
  bool closing_ = false;
  std::set<const void*> endless_;  // kernels

  std::vector<std::thread> threads_;
};

Device& Device::instance() {
  // A child has of its parent's device the memory alone: neither its workers, nor mutexes in a known
  // state. It leaves that one where it is.
  static std::mutex making;
  static std::unique_ptr<Device> device;  // at exit the workers are ended
  static const int registered = pthread_atfork([] { making.lock(); }, [] { making.unlock(); },
                                               [] {
                                                 static_cast<void>(device.release());
                                                 making.unlock();
                                               });
  static_cast<void>(registered);
  const std::lock_guard lock(making);
  if (!device) device.reset(new Device);
  return *device;
}

Device::Device() {
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t workers =
      number_from_environment("CONVLADDER_SIM_THREADS", 1, 1024).value_or(cores);
  try {
    while (threads_.size() < workers)
      threads_.emplace_back([this] {
        std::fesetenv(FE_DFL_ENV);  // a GPU has its own, whatever the host has set
        work();
      });
  } catch (const std::exception&) {
    if (threads_.empty()) throw;  // else: as many as the system gives, and has memory for
  }
}

Device::~Device() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Device::run(const Grid& grid) {
  const std::lock_guard alone(one_grid_);
  const uint64_t blocks = uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
  const uint64_t last = last_blocks;
  const BlockOrder order(last > 0 && last < blocks ? blocks - last : 0, blocks, grid.seed);
  if constexpr (COUNTING) begin_launch(grid);
  std::unique_lock lock(mutex_);
  grid_ = &grid;
  order_ = &order;
  next_block_ = 0;
  began_ = seconds();
  grid_arrivals = 0;
  error_ = nullptr;
  gave_up_.clear();
  openings_ = busy_ = static_cast<int>(std::min<uint64_t>(threads_.size(), order.count()));
  wake_.notify_all();
  wait_for_blocks(lock);
  for (std::thread& thread : std::exchange(more_, {})) thread.join();
  if (error_) std::rethrow_exception(error_);
  if constexpr (COUNTING) end_launch();
}

// Ends a kernel none of whose blocks has ended for so long that it never will: a loop that waits for another
// block, say. An order of magnitude more than a block of any layer takes.
void Device::wait_for_blocks(std::unique_lock<std::mutex>& lock) {
  // Of each worker's processor time. A kernel that has come to no end once isn't waited for again.
  const double most_seconds = endless_.count(grid_->kernel) ? 3 : 120;
  std::pair<uint64_t, int> before;
  for (double since = seconds(); busy_ > 0;) {
    if (done_.wait_for(lock, std::chrono::seconds(1), [this] { return busy_ == 0; })) return;
    const auto now = std::pair(next_block_.load(), busy_);
    if (std::exchange(before, now) != now) since = seconds();
    if (is_program() || seconds() - since < most_seconds * busy_) continue;
    endless_.insert(grid_->kernel);
    for (auto* threads : {&threads_, &more_}) {
      for (std::thread& thread : *threads) pthread_kill(thread.native_handle(), NO_END);
    }
  }
}

// The life of a worker thread.
void Device::work() {
  std::optional<Worker> worker;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return closing_ || openings_ > 0; });
    if (closing_) return;
    --openings_;
    lock.unlock();
    work_on_grid(worker);
    lock.lock();
  }
}

void Device::work_on_grid(std::optional<Worker>& worker) {
  std::exception_ptr error;
  uint64_t i = 0;
  try {
    if (!worker) worker.emplace();
    while ((i = next_block_++) < order_->count()) worker->run_block(*grid_, (*order_)[i]);
  } catch (...) {
    error = std::current_exception();
    next_block_ = order_->count();  // the others stop after the block they are at
  }
  const std::lock_guard lock(mutex_);
  // All blocks before it have begun: so it is the same one in every run.
  if (error && (!error_ || (i < failed_ && gave_up_.count(std::this_thread::get_id()) == 0))) {
    error_ = error, failed_ = i;
  }
  if (--busy_ == 0) done_.notify_one();
}

// Where a process may not have as much memory as it likes, half of it is for stacks.
bool Device::has_stacks_for_another() const {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  const uint64_t threads = uint64_t{grid_->threads.x} * grid_->threads.y * grid_->threads.z;
  return (busy_ + 1) * threads * Fibre::stack_bytes() <= limit.rlim_cur / 2;
}

// As many blocks as a GPU of this many multiprocessors has at a time, as far as threads decide it.
bool Device::may_begin_another() const {
  if (next_block_ >= order_->count()) return false;
  const uint64_t warps =
      (uint64_t{grid_->threads.x} * grid_->threads.y * grid_->threads.z + 31) / 32;
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  const uint64_t most = multiprocessors * std::min<uint64_t>(32, 64 / warps);
  return static_cast<uint64_t>(busy_) < most && has_stacks_for_another();
}

}  // namespace

std::string wait_for_other_blocks(unsigned rounds, bool repeats) {
  using Clock = std::chrono::steady_clock;
  static thread_local uint64_t turn;
  static thread_local Clock::time_point since, begun;
  Device& device = Device::instance();
  std::unique_lock lock(device.mutex_);
  const Clock::time_point now = Clock::now();
  device.idle_[std::this_thread::get_id()] = now;
  // One that was here long ago may be at work.
  const bool all_idle = static_cast<int>(device.idle_.size()) == device.busy_ &&
                        std::all_of(device.idle_.begin(), device.idle_.end(), [&](const auto& one) {
                          return now - one.second < std::chrono::milliseconds(300);
                        });
  if (!repeats) ++device.turn_;  // nobody gives up meanwhile
  if (turn != device.turn_ || !all_idle) since = now;
  if (rounds == 0 || (turn != device.turn_ && repeats)) begun = now;
  turn = device.turn_;
  if (device.error_) {
    device.gave_up_.insert(std::this_thread::get_id());
    return "another block has failed";
  }
  // Threads that count are probably at work, and only look at memory in vain: no need for many blocks at a time,
  // each with its stacks.
  const bool waits = repeats || now - std::max(begun, device.last_opening_) >
                                    std::chrono::milliseconds(1) * device.busy_;
  if (waits && device.openings_ == 0 && device.may_begin_another()) {
    ++device.busy_;
    device.last_opening_ = now;
    try {
      device.more_.emplace_back([&device] {
        std::fesetenv(FE_DFL_ENV);
        std::optional<Worker> worker;
        device.work_on_grid(worker);
      });
    } catch (const std::exception&) {  // no more threads to be had
      --device.busy_;
    }
    return "";
  }
  if (now - since > std::chrono::seconds(1) || now - begun > PATIENCE) {
    return device.next_block_ < device.order_->count() && !device.has_stacks_for_another()
               ? "no more blocks have room for their threads' stacks, and these wait"
           : device.next_block_ < device.order_->count()
               ? "every block that fits on the GPU at a time waits, and the others can't begin"
               : "no thread that is left will change that";
  }
  lock.unlock();
  if (repeats) std::this_thread::sleep_for(std::chrono::microseconds(std::min(rounds, 100u)));
  return "";
}

void end_wait_for_other_blocks() {
  Device& device = Device::instance();
  const std::lock_guard lock(device.mutex_);
  device.idle_.erase(std::this_thread::get_id());
  ++device.turn_;
}

std::string progress_of_launch() {
  Device& device = Device::instance();
  const std::lock_guard lock(device.mutex_);
  if (device.busy_ == 0) return "in the host's code";
  const uint64_t count = device.order_->count(), begun = std::min(count, device.next_block_.load());
  const uint64_t done = begun - std::min<uint64_t>(begun, device.busy_);
  const double taken = seconds() - device.began_;
  const Symbols symbols = read_symbols(device.grid_->kernel);
  std::string text =
      fmt::format("in {} at {}, of which {} of {} blocks were done in {:.0f} s", symbols.name,
                  source_line(code_offset(device.grid_->kernel) + 1), done, count, taken);
  if (done > 0) {
    const double all = taken * static_cast<double>(count) / static_cast<double>(done);
    text += all < 3600 ? fmt::format(": all take about {:.0f} s", all)
                       : fmt::format(": all take about {:.0f} h", all / 3600);
  }
  return text;
}

void set_thread_order_seed(uint64_t seed) { order_seed() = seed; }

std::size_t dynamic_limit(const void* kernel) {
  {
    const std::lock_guard lock(dynamic_limits_mutex);
    const auto found = dynamic_limits.find(kernel);
    if (found != dynamic_limits.end()) return found->second;
  }
  return DYNAMIC_BYTES - std::min(DYNAMIC_BYTES, static_shared_bytes(kernel));
}

std::size_t static_shared_bytes(const void* kernel) {
  static std::mutex mutex;
  static std::unordered_map<const void*, std::size_t> known;  // reading symbols takes long
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(kernel, 0);
  std::size_t& bytes = found->second;
  if (!is_new) return bytes;
  for (const SharedVariable& variable : read_symbols(kernel).shared) {
    if (variable.is_own) bytes += variable.bytes;
  }
  return bytes;
}

void run_last_blocks_only(uint64_t blocks) { last_blocks = blocks; }

std::vector<LaunchWork> plan_launches(const std::function<void()>& enqueue) {
  std::vector<LaunchWork> launches;
  plan = &launches;
  try {
    enqueue();
  } catch (...) {
    plan = nullptr;
    throw;
  }
  plan = nullptr;
  return launches;
}

bool is_planning() { return plan != nullptr; }

bool is_planned(const LaunchWork& launch) {
  if (plan) plan->push_back(launch);
  return is_planning();
}

std::size_t bytes_left_out(std::size_t bytes) {
  constexpr std::size_t OF_A_BLOCK = 1 << 16;  // more than a block of a stage computes
  const std::size_t blocks = last_blocks;
  return blocks == 0 ? 0 : bytes - std::min(bytes, blocks * OF_A_BLOCK);
}

void run_grid(Grid grid) {
  if constexpr (COUNTING) {
    if (is_program()) require_main();
  }
  note_work(grid.stream);
  const dim3 blocks = grid.blocks;
  const std::string refused = reason_to_refuse(grid);
  if (!refused.empty()) {
    const std::string name = read_symbols(grid.kernel).name;
    const cudaError_t error = !is_valid(blocks, grid.threads)   ? cudaErrorInvalidConfiguration
                              : is_too_large_to_cooperate(grid) ? cudaErrorCooperativeLaunchTooLarge
                              : !is_stream(grid.stream)         ? cudaErrorInvalidResourceHandle
                                                                : cudaErrorInvalidValue;
    set_last_error(error, is_program() ? "" : "kernel " + name + ": " + refused);
    if constexpr (COUNTING) {
      if (is_program()) {
        add_finding(name, 0, 0, [&] {
          return "CUDA refuses the launch at " + calling_line() + ": " + refused;
        });
      }
    }
    return;
  }
  if (failed_before()) return;
  const int64_t count = int64_t{blocks.x} * blocks.y * blocks.z;
  if (is_planned({grid.kernel, count, 0, 0, 0, blocks.y})) return;
  if (fault_due(Call::kLaunch)) {
    set_last_error(cudaErrorUnknown);
    return;
  }
  grid.seed = order_seed();
  // One after the other, also of several host threads: from the question whether it must run to its end.
  static std::mutex one_launch;
  const std::lock_guard lock(one_launch);
  if constexpr (COUNTING) {
    if (is_program()) {
      const bool repeats = repeats_earlier_launch(grid);
      note_launch(grid, repeats);
      if (repeats) return;
    }
  }
  const DeviceMemoryInReach in_reach;
  try {
    Device::instance().run(grid);
  } catch (const KernelError& error) {
    const std::string name = read_symbols(grid.kernel).name;
    set_last_error(error.code, "kernel " + name + ", " + error.what());
    if constexpr (COUNTING) {
      if (is_program()) add_finding(name, 0, 0, [&] { return error.what(); });
    }
  } catch (const std::bad_alloc&) {
    set_last_error(cudaErrorLaunchFailure,
                   "kernel " + read_symbols(grid.kernel).name +
                       ", out of host memory, which its threads' stacks have taken");
  }
}

}  // namespace convladder::simulator

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  using namespace convladder::simulator;
  if (!kernel) return set_last_error(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > MOST_DYNAMIC_BYTES) {
    return set_last_error(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(dynamic_limits_mutex);
  dynamic_limits[kernel] = value;
  return cudaSuccess;
}
