# Solution for model Arbitrary_Objective_Function
# Objective value = 0
C_291839800001156_female_80.0_0_female_84_Y_N_N_N_N_N_N 1
