#include <cstdio>

#include "base/build_info.h"

int main() { std::printf("assay %s\n", assay::build_info().version.data()); }
