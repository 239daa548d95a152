#pragma once

#include <cooperative_groups/reduce.h>
