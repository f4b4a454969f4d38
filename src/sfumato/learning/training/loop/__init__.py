"""One step of private training after another: batches, clipped sums, noise, the optimizer's step.

`run` is the state that loader, optimizer and engine share; `logical_batch` is what the next step is for;
`private_loader` draws batches, `steps` numbers them, `private_optimizer` releases noisy gradients, `run_loss`
prices what was released.
"""
