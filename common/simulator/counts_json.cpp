#include "common/simulator/counts_json.h"

#include <map>

namespace convladder::simulator {
namespace {

// [[amount, how many blocks ask for as much]]
Json amounts_json(const std::map<int64_t, int64_t>& amounts) {
  Json pairs = Json::array();
  for (const auto& [amount, blocks] : amounts) pairs.push_back(Json::array({amount, blocks}));
  return pairs;
}

Json work_members(const LaunchWork& work) {
  Json members = {{"blocks", work.blocks},
                  {"sectors_read", work.sectors_read},
                  {"sectors_written", work.sectors_written}};
  if (work.library_products > 0) members["library_products"] = work.library_products;
  if (!work.products.empty()) members["products"] = amounts_json(work.products);
  if (!work.wavefronts.empty()) members["wavefronts"] = amounts_json(work.wavefronts);
  if (!work.tensor_instructions.empty()) {
    members["tensor_instructions"] = amounts_json(work.tensor_instructions);
  }
  if (!work.wgmma_columns.empty()) members["wgmma_columns"] = amounts_json(work.wgmma_columns);
  return members;
}

}  // namespace

Json work_json(const std::vector<const LaunchWork*>& launches, const LaunchWork* first) {
  Json all = Json::array();
  Json last;  // as its members are without how many times
  for (const LaunchWork* launch : launches) {
    Json members = work_members(*launch);
    if (launch == first) members["first"] = true;
    if (members == last) {
      all.back()["times"] = all.back().value("times", 1) + 1;
    } else {
      all.push_back(members);
      last = members;
    }
  }
  return all;
}

}  // namespace convladder::simulator
