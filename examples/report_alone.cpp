// Writes the page of an empty plan to standard output: what a reader sees when nothing holds.
#include <cstdio>

#include "report/plan_page.h"

int main() {
  std::fputs(assay::plan_page(assay::Plan{}).c_str(), stdout);
  return 0;
}
