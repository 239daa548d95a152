// What a Hopper does beside its threads: barriers in shared memory that others complete (mbarrier), bulk copies,
// products of warpgroups; and what is wrong with their use.
//
// A copy or a product may take effect at any moment between its begin and the end that threads wait for. Here
// that is the last one, when nobody can go on otherwise, or, in blocks that draw so, the first: as with
// CopyQueue. Who knows of what is told by clocks: of every thread, barrier and warpgroup (an actor) how much of
// what it has done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/simulator/copy_queue.h"
#include "common/simulator/device_calls.h"
#include "common/simulator/tensor_map.h"

namespace convladder::simulator {

class Worker;

using Clock = std::vector<uint32_t>;  // by actor

class Hopper {
 public:
  explicit Hopper(Worker& worker) : worker_(worker) {}

  void begin_block(unsigned threads, bool immediate);
  void end_block();
  void leave(unsigned thread);
  // No thread can go on: ends one of the copies under way. False: there is none.
  bool advance();
  // For what a thread waits that sleeps with this key, as a sentence's end.
  std::string reason(const void* key, unsigned thread) const;

  void init(void* barrier, unsigned arrivals, const void* pc);
  void inval(void* barrier, const void* pc);
  uint64_t arrive(void* barrier, unsigned count, int bytes, bool drops, const void* pc);
  void expect(void* barrier, int bytes, const void* pc);
  bool wait(void* barrier, uint64_t phase, bool is_parity, bool sleeps, const void* pc);
  void arrive_when_copied(void* barrier, bool counts, const void* pc);

  void copy(void* to, const void* from, unsigned bytes, void* barrier, const void* pc);
  void copy(void* to, const TensorMap& map, void* barrier, const int* at, const int* offsets,
            const void* pc);
  void store(void* to, const void* from, unsigned bytes, const void* pc);
  void store(const TensorMap& map, const void* from, const int* at, const void* pc);
  // What a kernel gives as a tensor map may be its argument, or lie in the device's memory.
  void require_of_the_device(const void* map, const void* pc) const;
  void commit_stores();
  void wait_for_stores(unsigned pending);

  bool begin_product(const ptx::WarpgroupProduct& product, void* first_sum, const void* pc);
  void take_sums(void* const* registers);
  void fence_registers();
  void commit_products();
  void wait_for_products(unsigned pending, const void* pc);

  void fence_proxies();
  void fence_barriers();
  void set_registers(unsigned count, const void* pc);

  // ---- For BlockObserver: which accesses others know of ----

  bool is_active() const { return active_; }  // else nothing but __syncthreads() orders threads
  void sync_threads();
  void sync_lanes(unsigned warp, uint32_t lanes);
  void meet(unsigned number, bool leaves);  // the running thread, at a barrier with a number
  // An access of the running thread to a word of shared memory; what is wrong with it, empty if nothing.
  std::string touch(std::size_t word, bool write, bool strong, uint32_t code);
  struct Reader {
    unsigned thread;
    uint32_t epoch, code;
  };
  // One that has read the word since it was written, of whose read it doesn't know; but for the last reader.
  const Reader* unknown_reader(std::size_t word) const {
    return unknown_reader(word, clocks_[running()]);
  }
  // Whether it knows what that thread did when it last wrote (or read) the word.
  bool knows(std::size_t word, bool write, unsigned by) const;
  // What is wrong with the running thread's access to its own memory: that it is a sum under way.
  bool has_pending_sums() const { return pending_sums_ > 0; }
  std::string touch_own(const void* address) const;
  void fence();  // the running thread publishes what it knows ...
  void look();   // ... and learns what has been published

 private:
  struct Barrier {
    unsigned count = 0, pending = 0;
    int64_t bytes = 0;
    uint32_t phase = 0;
    unsigned actor = 0, made_by = 0, interval = 0;
    uint32_t code = 0, epoch = 0;  // of its making
    bool is_fenced = false;
    Clock arrived, ended;
  };
  struct Operation {  // of the copy engine or the tensor cores
    unsigned actor = 0;
    uint32_t done = ~0u;  // who knows so much of the actor knows of its end
    uint32_t code = 0;
    int swizzle = -1;  // -1: not known
    bool is_product = false;
  };
  struct Sums {
    unsigned columns = 0;
    std::vector<float> values;  // [64][columns]
  };
  struct Product {
    ptx::WarpgroupProduct what;
    uint32_t words[64][8];       // a, where it comes from registers
    std::vector<uint32_t> a, b;  // where 16 bytes of an operand in shared memory begin, each
    uint64_t number = 0;
    unsigned sums = 0, came = 0;
    uint32_t code = 0;
  };
  struct Group {  // a warpgroup
    unsigned actor = 0;
    std::deque<Product> products;  // from number `made` onwards
    uint64_t made = 0;
    std::vector<Sums> sums;
    Clock came;  // of all threads, when they began what is next
  };
  struct OwnSums {
    void* first;
    unsigned columns, number;
    uint64_t last = 0;  // the last product with them
    bool pending = false, half = false;
    std::vector<void*> registers;
  };
  struct Fragment {  // of a product under way
    uint64_t product;
    const uint32_t* variables;
    uint32_t values[4];
    uint32_t code;
  };
  struct Thread {
    uint64_t begun = 0;           // products
    std::deque<uint64_t> groups;  // of each that is committed and not known to be made: its end
    std::vector<OwnSums> sums;
    std::size_t latest = 0;
    std::deque<Fragment> fragments;
    bool is_fenced = false;
    uint32_t code = 0;                          // of the last product
    std::vector<std::function<void()>> stores;  // not committed
    std::deque<std::vector<std::function<void()>>> store_groups;
    unsigned store_actor = 0;
    uint32_t stores_committed = 0;
  };
  struct Others {
    unsigned count = 0;
    Reader readers[64];
  };
  struct Word {
    uint32_t written = 0;                  // the thread's epoch
    uint32_t writer = 0, readers[2] = {};  // operations; of two warpgroups, or of others
    Reader last{};                         // who has read it; with epoch 0 nobody
    uint32_t others = 0;                   // in others_, once there were some
  };

  unsigned running() const;
  unsigned registers_at_most() const;
  Group& group() { return groups_[running() / 128]; }
  uint32_t address_of(const void* pointer, std::size_t bytes, const void* pc) const;
  Barrier& barrier_at(void* barrier, const void* pc);
  std::string name_of(uint32_t address) const;
  uint64_t arrive(Barrier& barrier, unsigned count, bool drops, uint32_t code);
  void complete(Barrier& barrier);
  void later(std::function<void()> act);
  void begin_copy(void* to, const std::vector<Piece>& pieces, int64_t bytes, const TensorMap* map,
                  void* barrier, const void* pc);
  void begin_store(const void* from, const std::vector<Piece>& pieces, int64_t bytes,
                   const TensorMap* map, const void* pc);
  void require_not_read(uint32_t address, const std::vector<Piece>& pieces, uint32_t code) const;
  void find_operands(Product& product) const;
  void come(Product& product);
  void make_next(Group& group);
  template <typename Visit>
  void for_each_sum(const OwnSums& own, const Visit& visit);
  void watch(Group& group, const Product& product);
  std::vector<uint32_t> chunks_of(uint64_t descriptor, unsigned rows, bool transposed,
                                  uint32_t code) const;

  // ---- Clocks: nothing without counting ----
  void activate();
  unsigned new_actor();
  Clock& clock() { return clocks_[running()]; }
  void publish(Clock& at);  // the running thread
  static void join(Clock& to, const Clock& from);
  unsigned new_operation(unsigned actor, const void* pc, int swizzle, bool is_product);
  bool is_over(unsigned operation, const Clock& known) const;
  std::string objection(const Word& word, bool write, const Clock& known) const;
  const Reader* unknown_reader(std::size_t word, const Clock& known) const;
  struct Knowledge {
    const Clock &known,
        &fenced;  // of what has been done; of what was before fences between proxies
  };
  void enter(unsigned operation, const char* begin, unsigned bytes, bool write,
             const Knowledge& knowledge);
  void object(uint32_t code, uint32_t other, const std::function<std::string()>& text) const;

  Worker& worker_;
  bool immediate_ = false, active_ = false;
  std::map<uint32_t, Barrier> barriers_;  // by shared address
  std::deque<std::function<void()>> actions_;
  std::vector<Thread> threads_;
  std::vector<Group> groups_;
  int pending_sums_ = 0;
  std::vector<unsigned> registers_;  // of each thread, once one has set its own
  unsigned free_registers_ = 0;      // that others have given up

  std::vector<Clock> clocks_, fenced_;  // by thread; the latter at its last fence between proxies
  Clock numbered_[16], published_;
  unsigned actors_ = 0;
  std::vector<Operation> operations_;  // the first stands for none
  std::vector<Word> words_;
  // Of a word, since it was written: readers of whom the next one didn't know; the first stands for none.
  std::deque<Others> others_;
};

}  // namespace convladder::simulator
