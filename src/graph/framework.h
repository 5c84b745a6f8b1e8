/* framework.h - short names for what proto/framework.proto generates. */
#ifndef FL_GRAPH_FRAMEWORK_H
#define FL_GRAPH_FRAMEWORK_H

#include "framework.pb-c.h"

typedef Paddle__Framework__Proto__ProgramDesc pb_program;
typedef Paddle__Framework__Proto__Version pb_version;
typedef Paddle__Framework__Proto__BlockDesc pb_block;
typedef Paddle__Framework__Proto__VarDesc pb_var;
typedef Paddle__Framework__Proto__VarType pb_type;
typedef Paddle__Framework__Proto__VarType__TensorDesc pb_tensor;
typedef Paddle__Framework__Proto__VarType__LoDTensorDesc pb_lod_tensor;
typedef Paddle__Framework__Proto__VarType__LoDTensorArrayDesc pb_tensor_array;
typedef Paddle__Framework__Proto__OpDesc pb_op;
typedef Paddle__Framework__Proto__OpDesc__Var pb_args;
typedef Paddle__Framework__Proto__OpDesc__Attr pb_attr;

#define PB_PROGRAM (&paddle__framework__proto__program_desc__descriptor)
#define PB_VERSION (&paddle__framework__proto__version__descriptor)
#define PB_BLOCK   (&paddle__framework__proto__block_desc__descriptor)
#define PB_VAR     (&paddle__framework__proto__var_desc__descriptor)
#define PB_TYPE    (&paddle__framework__proto__var_type__descriptor)
#define PB_TENSOR  (&paddle__framework__proto__var_type__tensor_desc__descriptor)
#define PB_LOD_TENSOR                                                          \
    (&paddle__framework__proto__var_type__lo_dtensor_desc__descriptor)
#define PB_TENSOR_ARRAY                                                        \
    (&paddle__framework__proto__var_type__lo_dtensor_array_desc__descriptor)
#define PB_OP   (&paddle__framework__proto__op_desc__descriptor)
#define PB_ARGS (&paddle__framework__proto__op_desc__var__descriptor)
#define PB_ATTR (&paddle__framework__proto__op_desc__attr__descriptor)

#endif
