//! The switch engine, pure: phases, steps, guards and the world they act in.
