# Embeds the networks of models/*.net as at_net_builtins. New files are picked up automatically.

set(models_c ${PROJECT_BINARY_DIR}/models.c)
file(GLOB models CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.net)
list(TRANSFORM models REPLACE "\\.net$" "") # so that alexnet comes before alexnet-256
list(SORT models COMPARE NATURAL)
list(TRANSFORM models APPEND ".net")
anytime_embed(${models_c} at_net_builtin at_net_builtins learn/net/net.h FILES ${models} STEMS)
