// Barriers, and what the lanes of a warp do together; part of <cuda_runtime.h>. A call that is not as
// CUDA's Programming Guide wants it fails the kernel: docs/simulator.md.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <string>
#include <type_traits>

#include "common/simulator/device_calls.h"

constexpr int warpSize = 32;

// The last parameter of functions that say in messages where they were called.
#define CONVLADDER_HERE convladder::simulator::Place place = convladder::simulator::Place::here()

namespace convladder::simulator {

// What shuffles take, besides numbers: half-precision types.
template <typename T>
constexpr bool IN_REGISTERS = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// The value of lane `source`; undefined, and here 0, where that lane does not take part.
template <typename T>
T exchange(const char* name, Place place, unsigned mask, T value, unsigned source) {
  struct Part {
    const char* name;
    Place place;
    T value;
    unsigned source;
    T result;
  } own = {name, place, value, source, T()};
  LaneCall call = {
      name, place, mask, LaneCall::Kind::kExchange, &own, [](void* const* parts, unsigned lanes) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          if (!(lanes >> lane & 1)) continue;
          Part& part = *static_cast<Part*>(parts[lane]);
          if (lanes >> part.source & 1) {
            part.result = static_cast<Part*>(parts[part.source])->value;
          } else {
            note_undefined(part.name, part.place, lane, part.source, lanes);
          }
        }
      }};
  call.words = (sizeof(T) + 3) / 4;
  meet(call);
  return own.result;
}

// Segments of `width` lanes shuffle among themselves.
struct Segment {
  unsigned lane = lane_id(), first, last;
  Segment(int width, const char* name, Place place)
      : first(lane & ~static_cast<unsigned>(width - 1)), last(first + width - 1) {
    if (width < 1 || width > 32 || (width & (width - 1)) != 0) {
      fail_kernel(name, place, "(): the width is no power of two up to 32,");
    }
  }
};

// What is found of the lanes' values: which lanes take part, and a word that `find` makes for each.
struct Votes {
  uint64_t value;
  unsigned lanes = 0, found = 0;
};
template <typename Find>
Votes vote(const char* name, Place place, unsigned mask, uint64_t value, Find) {
  Votes own = {value};
  meet({name, place, mask, LaneCall::Kind::kExchange, &own, [](void* const* parts, unsigned lanes) {
          for (unsigned lane = 0; lane < 32; ++lane) {
            if (!(lanes >> lane & 1)) continue;
            Votes& votes = *static_cast<Votes*>(parts[lane]);
            votes.lanes = lanes;
            for (unsigned other = 0; other < 32; ++other) {
              if (!(lanes >> other & 1)) continue;
              const uint64_t value = static_cast<Votes*>(parts[other])->value;
              votes.found |= static_cast<unsigned>(Find()(votes.value, value)) << other;
            }
          }
        }});
  return own;
}
struct IsTrue {
  bool operator()(uint64_t, uint64_t other) const { return other != 0; }
};
struct IsSame {
  bool operator()(uint64_t own, uint64_t other) const { return own == other; }
};

template <typename T>
uint64_t word_of(T value) {
  uint64_t word = 0;
  if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
    return word_of(static_cast<int>(value));
  } else {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA matches values of 4 or 8 bytes");
    std::memcpy(&word, &value, sizeof(value));
  }
  return word;
}

template <typename T, typename Combine>
T reduce(const char* name, Place place, unsigned mask, T value, Combine combine) {
  struct Part {
    T value;
    const Combine& combine;
  } own = {value, combine};
  meet({name, place, mask, LaneCall::Kind::kExchange, &own, [](void* const* parts, unsigned lanes) {
          T* total = nullptr;
          for (unsigned lane = 0; lane < 32; ++lane) {
            if (!(lanes >> lane & 1)) continue;
            Part& part = *static_cast<Part*>(parts[lane]);
            if (total) part.value = part.combine(*total, part.value);
            total = &part.value;
          }
          for (unsigned lane = 0; lane < 32; ++lane) {
            if (lanes >> lane & 1) static_cast<Part*>(parts[lane])->value = *total;
          }
        }});
  return own.value;
}

}  // namespace convladder::simulator

// ---- Barriers ----

// Waits for all threads of the block. It is an error if some have left the kernel.
inline void __syncthreads(CONVLADDER_HERE) { convladder::simulator::sync_threads(false, place); }
// How many of them come with `predicate`; whether all do; whether any does.
inline int __syncthreads_count(int predicate, CONVLADDER_HERE) {
  return convladder::simulator::sync_threads(predicate != 0, place);
}
inline int __syncthreads_and(int predicate, CONVLADDER_HERE) {
  return convladder::simulator::sync_threads(predicate == 0, place) == 0;
}
inline int __syncthreads_or(int predicate, CONVLADDER_HERE) {
  return convladder::simulator::sync_threads(predicate != 0, place) != 0;
}
// Waits for the lanes of this warp named in `mask` that have not left the kernel.
inline void __syncwarp(unsigned mask = 0xffffffff, CONVLADDER_HERE) {
  using namespace convladder::simulator;
  meet({"__syncwarp", place, mask, LaneCall::Kind::kBarrier});
}

// ---- Shuffles: the value of another lane, or one's own beyond the segment's end ----

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, CONVLADDER_HERE) {
  static_assert(convladder::simulator::IN_REGISTERS<T>, "CUDA shuffles numbers alone");
  const convladder::simulator::Segment segment(width, "__shfl_sync", place);
  return convladder::simulator::exchange("__shfl_sync", place, mask, value,
                                         segment.first + (source & (width - 1)));
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CONVLADDER_HERE) {
  static_assert(convladder::simulator::IN_REGISTERS<T>, "CUDA shuffles numbers alone");
  const convladder::simulator::Segment segment(width, "__shfl_up_sync", place);
  const bool within = segment.lane - segment.first >= delta % 32;
  return convladder::simulator::exchange("__shfl_up_sync", place, mask, value,
                                         segment.lane - (within ? delta % 32 : 0));
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CONVLADDER_HERE) {
  static_assert(convladder::simulator::IN_REGISTERS<T>, "CUDA shuffles numbers alone");
  const convladder::simulator::Segment segment(width, "__shfl_down_sync", place);
  const bool within = segment.lane + delta % 32 <= segment.last;
  return convladder::simulator::exchange("__shfl_down_sync", place, mask, value,
                                         segment.lane + (within ? delta % 32 : 0));
}

// Earlier segments can be read, later ones cannot.
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize, CONVLADDER_HERE) {
  static_assert(convladder::simulator::IN_REGISTERS<T>, "CUDA shuffles numbers alone");
  const convladder::simulator::Segment segment(width, "__shfl_xor_sync", place);
  const unsigned source = segment.lane ^ (static_cast<unsigned>(bits) % 32);
  return convladder::simulator::exchange("__shfl_xor_sync", place, mask, value,
                                         source <= segment.last ? source : segment.lane);
}

// ---- Votes and reductions ----

// The lanes that are at this place together. As many as can come, as after a branch on a GPU, though
// CUDA does not promise that.
inline unsigned __activemask(CONVLADDER_HERE) {
  unsigned mask = 0;
  convladder::simulator::meet({"__activemask", place, 0,
                               convladder::simulator::LaneCall::Kind::kExchange, &mask,
                               [](void* const* parts, unsigned lanes) {
                                 for (unsigned lane = 0; lane < 32; ++lane) {
                                   if (parts[lane]) *static_cast<unsigned*>(parts[lane]) = lanes;
                                 }
                               }});
  return mask;
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CONVLADDER_HERE) {
  using namespace convladder::simulator;
  return vote("__ballot_sync", place, mask, predicate != 0, IsTrue()).found;
}
inline int __any_sync(unsigned mask, int predicate, CONVLADDER_HERE) {
  using namespace convladder::simulator;
  return vote("__any_sync", place, mask, predicate != 0, IsTrue()).found != 0;
}
inline int __all_sync(unsigned mask, int predicate, CONVLADDER_HERE) {
  using namespace convladder::simulator;
  const Votes votes = vote("__all_sync", place, mask, predicate != 0, IsTrue());
  return votes.found == votes.lanes;
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, CONVLADDER_HERE) {
  using namespace convladder::simulator;
  return vote("__match_any_sync", place, mask, word_of(value), IsSame()).found;
}
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* all_same, CONVLADDER_HERE) {
  using namespace convladder::simulator;
  const Votes votes = vote("__match_all_sync", place, mask, word_of(value), IsSame());
  *all_same = votes.found == votes.lanes;
  return *all_same ? votes.lanes : 0;
}

#define CONVLADDER_REDUCTION(name, T, expression)                             \
  inline T name(unsigned mask, T value, CONVLADDER_HERE) {                    \
    const auto combine = [](T a, T b) { return static_cast<T>(expression); }; \
    return convladder::simulator::reduce(#name, place, mask, value, combine); \
  }
CONVLADDER_REDUCTION(__reduce_add_sync, unsigned, a + b)
CONVLADDER_REDUCTION(__reduce_min_sync, unsigned, b < a ? b : a)
CONVLADDER_REDUCTION(__reduce_max_sync, unsigned, a < b ? b : a)
CONVLADDER_REDUCTION(__reduce_add_sync, int, static_cast<unsigned>(a) + static_cast<unsigned>(b))
CONVLADDER_REDUCTION(__reduce_min_sync, int, b < a ? b : a)
CONVLADDER_REDUCTION(__reduce_max_sync, int, a < b ? b : a)
CONVLADDER_REDUCTION(__reduce_and_sync, unsigned, a& b)
CONVLADDER_REDUCTION(__reduce_or_sync, unsigned, a | b)
CONVLADDER_REDUCTION(__reduce_xor_sync, unsigned, a ^ b)
#undef CONVLADDER_REDUCTION
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
