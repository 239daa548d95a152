// Three ways for a warp to read a 32 x 32 tile of shared memory, for the picture of its banks.
#pragma once

namespace convladder {

// Launches read_row, read_column and read_padded_column, one warp each.
void launch_tile_reads();

}  // namespace convladder
