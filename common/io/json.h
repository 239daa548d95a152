// Just enough JSON to write the records of the measuring commands.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace convladder {

// A JSON value as text: built bottom-up, keys in the order given. NaN and infinity become null.
class Json {
 public:
  Json(const char* text);         // string
  Json(const std::string& text);  // string
  Json(double number);
  Json(int number);
  Json(int64_t number);
  Json(bool value);
  static Json object(const std::vector<std::pair<std::string, Json>>& members);
  static Json array(const std::vector<Json>& items);

  const std::string& text() const { return text_; }

 private:
  Json() = default;
  std::string text_;
};

// Writes to a temporary file beside `path`, then renames it. Throws std::runtime_error naming the
// file.
void write_json(const std::string& path, const Json& value);

}  // namespace convladder
