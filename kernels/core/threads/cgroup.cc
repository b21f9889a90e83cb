// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cgroup.h"

#include <fstream>
#include <sstream>

namespace attendant {
namespace {

// The process's path inside the hierarchy of `controller`, from the file `own`.
std::string CgroupPath(const std::string& controller, const std::string& own) {
  std::ifstream file(own);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::stringstream names(line.substr(first + 1, second - first - 1));
    if (controller.empty() && second == first + 1) return line.substr(second + 1);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == controller && !controller.empty()) return line.substr(second + 1);
    }
  }
  return "/";
}

}  // namespace

std::vector<std::string> CgroupFolders(const std::string& mount, const std::string& controller,
                                       const std::string& own) {
  std::vector<std::string> folders;
  std::string path = CgroupPath(controller, own);
  while (true) {
    folders.push_back(mount + path);
    if (path.empty()) return folders;
    path.erase(path == "/" ? 0 : path.rfind('/'));
  }
}

std::string ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace attendant
