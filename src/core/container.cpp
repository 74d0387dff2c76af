#include "core/container.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace rushlight {
namespace {

std::vector<std::string> fields_of(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::istringstream in{std::string(text)};
  for (std::string field; std::getline(in, field, separator);) {
    out.push_back(field);
  }
  return out;
}

bool has_field(std::string_view text, std::string_view field) {
  const std::vector<std::string> fields = fields_of(text, ',');
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

// The numbers that a file begins with; none for "max", and where there is no such file.
std::vector<uint64_t> numbers_in(const std::string& path) {
  std::ifstream file(path);
  std::vector<uint64_t> out;
  for (std::string word; file >> word;) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) {
      break;
    }
    out.push_back(number);
  }
  return out;
}

// The group of this process in the hierarchy of a controller; "" names that of version 2.
std::string own_group(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // 4:cpu,cpuacct:/group
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string names = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? names.empty() : has_field(names, controller)) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

// The folders of this process's group and of those around it, as far as the container sees them.
std::vector<std::string> own_folders(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // 32 31 0:29 /what/of/it /mounted/where options … - type source options
    const size_t dash = line.find(" - ");
    const std::vector<std::string> where = fields_of(std::string_view(line).substr(0, dash), ' ');
    if (dash == std::string::npos || where.size() < 5) {
      continue;
    }
    const std::vector<std::string> what = fields_of(std::string_view(line).substr(dash + 3), ' ');
    const bool is_it = controller.empty()
                           ? what[0] == "cgroup2"
                           : what[0] == "cgroup" && has_field(what.back(), controller);
    if (!is_it) {
      continue;
    }
    const std::string& seen = where[3];
    std::string group = own_group(root, controller);
    if (seen != "/") {  // a container sees a part of the hierarchy
      group = group.rfind(seen, 0) == 0 ? group.substr(seen.size()) : "/";
    }
    std::vector<std::string> out;
    while (!group.empty() && group != "/") {
      out.push_back(root + where[4] + group);
      group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
    out.push_back(root + where[4]);
    return out;
  }
  return {};
}

void limit_processors(ContainerLimits& limits, const std::vector<uint64_t>& quota_and_period) {
  if (quota_and_period.size() == 2 && quota_and_period[0] != 0 && quota_and_period[1] != 0) {
    limits.processors = std::min(limits.processors, static_cast<double>(quota_and_period[0]) /
                                                        static_cast<double>(quota_and_period[1]));
  }
}

void limit_bytes(ContainerLimits& limits, const std::vector<uint64_t>& bytes) {
  if (!bytes.empty()) {
    limits.bytes = std::min(limits.bytes, bytes[0]);
  }
}

}  // namespace

ContainerLimits container_limits(const std::string& root) {
  ContainerLimits limits;
  for (const std::string& folder : own_folders(root, "")) {
    limit_processors(limits, numbers_in(folder + "/cpu.max"));
    limit_bytes(limits, numbers_in(folder + "/memory.max"));
  }
  for (const std::string& folder : own_folders(root, "cpu")) {
    std::vector<uint64_t> quota = numbers_in(folder + "/cpu.cfs_quota_us");  // -1: no quota
    const std::vector<uint64_t> period = numbers_in(folder + "/cpu.cfs_period_us");
    quota.insert(quota.end(), period.begin(), period.end());
    limit_processors(limits, quota);
  }
  for (const std::string& folder : own_folders(root, "memory")) {
    limit_bytes(limits, numbers_in(folder + "/memory.limit_in_bytes"));
  }
  return limits;
}

}  // namespace rushlight
