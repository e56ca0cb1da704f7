-- Executions that are granted lie in lots on PostgreSQL; here an index costs little, and they lie in rows.
--
-- +goose Up
SELECT 1;
