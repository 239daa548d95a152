#include "common/simulator/counting/shadow.h"

namespace convladder::simulator {
namespace {

constexpr unsigned WARP = 32;

bool same_interval(Stamp a, Stamp b) { return a.block == b.block && a.interval == b.interval; }
bool same_warp(Stamp a, Stamp b) { return a.thread / WARP == b.thread / WARP; }

// Whether nothing orders `before` and `now`, two touches of one word by different threads.
bool is_concurrent(Stamp before, Stamp now, Scope scope) {
  if (!before.present) return false;
  if (scope == Scope::kGrid && (before.several_blocks || before.block != now.block)) return true;
  if (!same_interval(before, now)) return false;  // in shared memory: also what blocks before left
  if (before.several_warps || !same_warp(before, now)) return true;
  if (before.phase != now.phase) return false;  // a __syncwarp() between
  return before.several_threads || before.thread != now.thread;
}

}  // namespace

Touch enter_read(ShadowWord& word, Touch now, Scope scope) {
  if (is_concurrent(word.write, now.stamp, scope)) return {word.write, word.write_code};
  const Stamp before = word.read;
  Stamp read = now.stamp;
  if (before.present) {
    if (scope == Scope::kGrid) {
      read.several_blocks = before.several_blocks || before.block != read.block;
    }
    if (same_interval(before, read)) {
      read.several_warps = before.several_warps || !same_warp(before, read);
      if (before.phase == read.phase) {
        read.several_threads = before.several_threads || before.thread != read.thread;
      }
    }
  }
  word.read = read;
  word.read_code = now.code;
  return {};
}

Touch enter_write(ShadowWord& word, Touch now, Scope scope) {
  if (is_concurrent(word.write, now.stamp, scope)) return {word.write, word.write_code};
  if (is_concurrent(word.read, now.stamp, scope)) return {word.read, word.read_code};
  word.write = now.stamp;
  word.write_code = now.code;
  return {};
}

}  // namespace convladder::simulator
