#include "http/router.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using Kind = Router::Match::Kind;

TEST(Router, finds_routes_and_placeholders) {
  Router router;
  ASSERT_TRUE(router.add("GET", "/", 0));
  ASSERT_TRUE(router.add("GET", "/v1/models", 1));
  ASSERT_TRUE(router.add("GET", "/v1/models/{id...}", 2));
  ASSERT_TRUE(router.add("POST", "/v1/{kind}/run", 3));
  ASSERT_TRUE(router.add("PUT", "/v1/{kind}/run", 4));
  EXPECT_EQ(router.find("GET", "/").handler, 0U);
  EXPECT_EQ(router.find("GET", "/v1/models").handler, 1U);
  EXPECT_EQ(router.find("HEAD", "/v1/models").handler, 1U);
  const auto model = router.find("GET", "/v1/models/org/na%2Fme");
  EXPECT_EQ(model.handler, 2U);
  EXPECT_EQ(model.pattern, "/v1/models/{id...}");
  ASSERT_EQ(model.parameters.size(), 1U);
  EXPECT_EQ(model.parameters[0], std::make_pair(std::string("id"), std::string("org/na/me")));
  EXPECT_EQ(router.find("PUT", "/v1/x/run").handler, 4U);
  EXPECT_EQ(router.find("GET", "/v1/x/run").allow, "POST, PUT");
  EXPECT_EQ(router.find("POST", "/v1/models").allow, "GET, HEAD");
  EXPECT_EQ(router.find("GET", "/v1/models/%z").kind, Kind::kBadPath);
  for (const char* path :
       {"/v1", "/v1/", "/v1/models/", "/v1//run", "/v1/x/run/", "/v1/x/y/run", "//", "/V1/models"}) {
    EXPECT_EQ(router.find("POST", path).kind, Kind::kNotFound) << path;
  }
}

TEST(Router, malformed_or_repeated_patterns_are_refused) {
  Router router;
  EXPECT_FALSE(router.add("GET", "v1", 0).has_value());
  EXPECT_FALSE(router.add("GET", "", 0).has_value());
  EXPECT_FALSE(router.add("GET", "/{}", 0).has_value());
  EXPECT_FALSE(router.add("GET", "/{...}", 0).has_value());
  EXPECT_FALSE(router.add("GET", "/a{b}", 0).has_value());
  EXPECT_FALSE(router.add("GET", "/{a", 0).has_value());
  EXPECT_FALSE(router.add("GET", "/{a...}/b", 0).has_value());
  ASSERT_TRUE(router.add("GET", "/a", 0));
  EXPECT_FALSE(router.add("GET", "/a", 1).has_value());
  EXPECT_TRUE(router.add("PUT", "/a", 1).has_value());
}

}  // namespace
}  // namespace assay
