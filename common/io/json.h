// JSON: written, the records of the measuring commands; read, the description of a machine.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace convladder {

// A JSON value as text: built bottom-up, keys in the order given. NaN and infinity become null.
class Json {
 public:
  Json(const char* text);         // string
  Json(const std::string& text);  // string
  Json(double number);
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
  Json(T number) : text_(std::to_string(number)) {}
  Json(bool value);
  static Json object(const std::vector<std::pair<std::string, Json>>& members);
  static Json array(const std::vector<Json>& items);

  const std::string& text() const { return text_; }

 private:
  Json() = default;
  std::string text_;
};

// A JSON value that was read.
class JsonValue {
 public:
  // Throw std::runtime_error, naming the member, unless this is an object with such a member. A
  // number is finite.
  const std::string& text(const std::string& name) const;
  double number(const std::string& name) const;
  const std::vector<JsonValue>& items(const std::string& name) const;

 private:
  friend class JsonReader;
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  static const char* name_of(Kind kind);
  const JsonValue& member(const std::string& name, Kind kind) const;

  Kind kind_ = Kind::kNull;
  double number_ = 0;
  std::string text_;
  std::vector<std::string> names_;  // of an object's members, whose values are items_
  std::vector<JsonValue> items_;
};

// Throws std::runtime_error "FILE: reason" when it can't be read or isn't JSON.
JsonValue read_json(const std::string& path);

// Writes to a temporary file beside `path`, then renames it. Throws std::runtime_error naming the
// file.
void write_json(const std::string& path, const Json& value);

}  // namespace convladder
