// Named problems: common/problems.csv and any CSV file of the user's.
#pragma once

#include <string>
#include <vector>

#include "common/core/conv_shape.h"

namespace convladder {

struct Problem {
  std::string name;
  ConvArguments arguments;  // not validated: a row that must be rejected is still a row
  bool bias = true;
};

// Columns are found by header name among name,n,c,h,w,k,r,s,stride_h,stride_w,pad_h,pad_w,dil_h,
// dil_w,groups,bias; absent ones default to stride 1, pad 0, dilation 1, groups 1, bias 1; unknown
// columns are ignored, with a warning on stderr where the name is near one of these; n,c,h,w,k,r,s
// must be there. An empty field of a column that may be absent takes the default, too. A row
// without a name gets "row<line>"; no two rows may have the same name, and none may hold a control
// character, which a terminal might obey. Blank lines and lines starting with # are skipped; CRLF
// and quoted fields are understood. Throws std::runtime_error "FILE:line:column: reason" for a
// malformed file, and "FILE: reason" when it can't be read or holds no problem.
std::vector<Problem> read_problems(const std::string& path);

// The problem called `name` among `problems`, those of the file `path`; throws InvalidArgument, with
// near names, if there is none.
const Problem& find_problem(const std::vector<Problem>& problems, const std::string& name,
                            const std::string& path = "common/problems.csv");

// Multiply-adds of the problem, taps on padding included; 0 when make_conv_shape() rejects it.
double multiply_adds(const ConvArguments& arguments);

// The problem cut down to at most `max_macs` multiply-adds, for where the whole would take too long
// (the simulator). First N becomes 1; then P and Q shrink to no less than 16; then the filters and
// channels of a group, to no less than 16; then the groups, to no less than 2; then these as far as
// needed. R, S, strides, pads and dilations stay, and with them the awkward parts: what shrinks stays
// odd or even, and the division behind P and Q leaves the same remainder. A problem within bounds, or
// one that make_conv_shape() rejects, comes back as it is; one whose R*S alone passes `max_macs` comes
// back with P, Q, a group's filters and its channels at 1 or 2, and 3 groups at the most.
ConvArguments reduce(const ConvArguments& arguments, double max_macs);

}  // namespace convladder
