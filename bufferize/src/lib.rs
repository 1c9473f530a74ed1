//! One-Shot Bufferize: op models, facts, decisions into memrefs.
