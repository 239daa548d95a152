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
// columns are ignored; n,c,h,w,k,r,s must be there. A row without a name gets "row<line>". Blank
// lines and lines starting with # are skipped; CRLF and quoted fields are understood. Throws
// std::runtime_error "FILE:line:column: reason" for a malformed file, and "FILE: reason" when it
// can't be read.
std::vector<Problem> read_problems(const std::string& path);

// The problem called `name` among `problems`; throws InvalidArgument, with near names, if there is
// none.
const Problem& find_problem(const std::vector<Problem>& problems, const std::string& name);

}  // namespace convladder
