"""The paper's tables and figures, the settings behind them, and the store of results."""
