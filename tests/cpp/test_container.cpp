// Limits of control groups, of trees of files that are made here.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "check.h"
#include "core/container.h"

using namespace rushlight;

// A /proc and a /sys, removed at the end.
struct Machine {
  explicit Machine(const std::map<std::string, std::string>& files) {
    char name[] = "/tmp/container_XXXXXX";
    root = mkdtemp(name);
    for (const auto& [path, text] : files) {
      const std::filesystem::path file = root + path;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file) << text;
    }
  }
  ~Machine() { std::filesystem::remove_all(root); }
  ContainerLimits limits() const { return container_limits(root); }
  std::string root;
};

const std::string mount_2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
const std::string mounts_1 =
    "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

RL_TEST(without_a_limit_there_is_none) {
  for (const Machine& machine :
       {Machine({}), Machine({{"/proc/self/mountinfo", mount_2}, {"/proc/self/cgroup", "0::/a\n"}}),
        Machine({{"/proc/self/mountinfo", mount_2},
                 {"/proc/self/cgroup", "0::/\n"},
                 {"/sys/fs/cgroup/cpu.max", "max 100000\n"},
                 {"/sys/fs/cgroup/memory.max", "max\n"}}),
        Machine({{"/proc/self/mountinfo", "nonsense\n - \n1 2 3 - cgroup2\n"},
                 {"/proc/self/cgroup", "x\n1:\n"}})}) {
    CHECK(std::isinf(machine.limits().processors));
    CHECK(machine.limits().bytes == UINT64_MAX);
  }
}

RL_TEST(groups_of_version_2) {
  const Machine machine({{"/proc/self/mountinfo", mount_2},
                         {"/proc/self/cgroup", "1:name=systemd:/else\n0::/a/b\n"},
                         {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                         {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
                         {"/sys/fs/cgroup/a/memory.max", "4096\n"},
                         {"/sys/fs/cgroup/a/b/memory.max", "1048576\n"}});
  CHECK(machine.limits().processors == 1.5);  // of the group around it
  CHECK(machine.limits().bytes == 4096);
}

RL_TEST(groups_of_version_1) {
  const Machine machine({{"/proc/self/mountinfo", mounts_1},
                         {"/proc/self/cgroup", "5:memory:/m\n2:cpu,cpuacct:/c\n"},
                         {"/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "50000\n"},
                         {"/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n"},
                         {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                         {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
                         {"/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "8192\n"}});
  CHECK(machine.limits().processors == 0.5);
  CHECK(machine.limits().bytes == 8192);
}

// A container without a namespace of groups: its own are mounted where the machine has the roots.
RL_TEST(a_part_of_the_groups_is_seen) {
  const Machine machine({{"/proc/self/mountinfo",
                          "32 31 0:29 /docker/1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"},
                         {"/proc/self/cgroup", "2:cpu:/docker/1/inner\n"},
                         {"/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "400000\n"},
                         {"/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n"},
                         {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n"},
                         {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}});
  CHECK(machine.limits().processors == 3);
}

RL_TEST_MAIN()
