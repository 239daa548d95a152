// The simulator's <assert.h>, which <cassert> includes: in a kernel an assertion that does not hold
// fails the launch, and not the program.
#include_next <assert.h>  // as often as it is included

#if !defined(NDEBUG) && defined(__cplusplus)
#include "common/simulator/device_calls.h"
#undef assert
#define assert(condition)                                                \
  (static_cast<bool>(condition) ? static_cast<void>(0)                   \
                                : convladder::simulator::fail_assertion( \
                                      #condition, __PRETTY_FUNCTION__, {__FILE__, __LINE__}))
#endif
