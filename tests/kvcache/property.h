// Runs a rapidcheck property with a fixed seed, so that every run tests the same inputs; failures are shrunk.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>
#include <utility>

namespace assay::test {

template <class Testable>
void check_property(Testable&& testable, int n_cases, uint64_t seed = 20261201) {
  rc::detail::TestParams parameters;
  parameters.seed = seed;
  parameters.maxSuccess = n_cases;
  const auto result =
      rc::detail::checkTestable(std::forward<Testable>(testable), rc::detail::TestMetadata{}, parameters);
  if (!result.template is<rc::detail::SuccessResult>()) {
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    ADD_FAILURE() << text.str();
  }
}

}  // namespace assay::test
